/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA__PROJECT_H
#define MHA__PROJECT_H

/*
 * Y = X W^T + b over all B * tokens rows, as independent tasks on one grid of row tiles and columns
 * fixed by the sizes. A task computes its tile of Y where it belongs, if that is plain rows, or
 * in scratch memory and hands it on, to rows or straight into the packed keys or values. Without a weight Y is X: the
 * tensor holds heads already, and the tasks only pack it.
 */
#include "attention/problem.h"

enum mha__project_to {
    MHA__PROJECT_TO_ROWS,  /* to.data[b, t, :] */
    MHA__PROJECT_TO_KEYS,  /* packed keys */
    MHA__PROJECT_TO_VALUES /* packed values */
};

struct mha__projection {
    const struct mha__problem *problem;
    const struct mha__means *means;
    const struct mha__weight *weight;
    struct mha__input from;
    int64_t tokens; /* rows a batch row: T or S */
    enum mha__project_to target;
    struct mha__output to;
    bool zero_padding; /* rows beyond the query length become 0, whatever the bias */
};

/* The one distance between all B * tokens rows of so many features, or 0: then they are no matrix, and a lane
 * gathers them first, or stores them one by one. */
int64_t
mha__project_row_distance(const struct mha__input *x, int64_t B, int64_t tokens, int64_t features);

int64_t mha__project_tasks(const struct mha__projection *projection);

void mha__project_task(const struct mha__projection *projection, int64_t task, int64_t lane);

#endif
