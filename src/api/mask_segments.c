/* SPDX-License-Identifier: Apache-2.0 */
#include "api/mask_parts.h"
#include "platform/memory.h"

#include <mha/mask.h>

/*
 * Segments. Keys of one id that lie side by side are a run; the runs of a batch row are sorted by
 * id, those of one id are joined, and each query looks its id up: O((T + S) log S) at worst, and
 * O(S + T log n) for n runs that are in order already.
 */

struct run {
    int64_t id, first, end; /* keys first .. end-1 */
};

static bool is_before(const struct run *a, const struct run *b)
{
    return a->id < b->id || (a->id == b->id && a->first < b->first);
}

/* The runs of keys [n], in their order; how many. */
static int64_t find_runs(const int64_t *ids, int64_t n, struct run *runs)
{
    int64_t count = 0;
    for (int64_t j = 0; j < n; j++) {
        if (count > 0 && runs[count - 1].id == ids[j]) {
            runs[count - 1].end = j + 1;
        } else {
            runs[count++] = (struct run){ids[j], j, j + 1};
        }
    }
    return count;
}

/* Restores the heap (each parent not before its children) below `at`. */
static void sift_down(struct run *runs, int64_t at, int64_t count)
{
    const struct run moving = runs[at];
    for (int64_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&runs[child], &runs[child + 1])) {
            child++;
        }
        if (!is_before(&moving, &runs[child])) {
            break;
        }
        runs[at] = runs[child];
    }
    runs[at] = moving;
}

/* Heapsort: in place and never slow. What is in order already costs one pass. */
static void sort_runs(struct run *runs, int64_t count)
{
    int64_t in_order = 1;
    while (in_order < count && is_before(&runs[in_order - 1], &runs[in_order])) {
        in_order++;
    }
    if (in_order >= count) {
        return;
    }
    for (int64_t at = count / 2 - 1; at >= 0; at--) {
        sift_down(runs, at, count);
    }
    for (int64_t last = count - 1; last > 0; last--) {
        const struct run largest = runs[0];
        runs[0] = runs[last];
        runs[last] = largest;
        sift_down(runs, 0, last);
    }
}

/* Joins sorted runs of one id, over what lies between them; how many are left. */
static int64_t join_runs(struct run *runs, int64_t count, bool *scattered)
{
    int64_t left = 0;
    for (int64_t r = 0; r < count; r++) {
        if (left > 0 && runs[left - 1].id == runs[r].id) {
            runs[left - 1].end = runs[r].end;
            *scattered = true;
        } else {
            runs[left++] = runs[r];
        }
    }
    return left;
}

/* first and end of the keys with this id; 0 and 0 where there are none. */
static void look_up(const struct run *runs, int64_t count, int64_t id, int64_t *first, int64_t *end)
{
    int64_t low = 0;
    int64_t high = count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (runs[middle].id < id) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    const bool found = low < count && runs[low].id == id;
    *first = found ? runs[low].first : 0;
    *end = found ? runs[low].end : 0;
}

/* first and end of every query from the ids; runs is room for `keys` of them. */
static void find_spans(struct mha__segments *segments, struct run *runs)
{
    for (int64_t b = 0; b < segments->batch; b++) {
        int64_t count = find_runs(segments->key_ids + b * segments->keys, segments->keys, runs);
        sort_runs(runs, count);
        count = join_runs(runs, count, &segments->scattered);
        for (int64_t i = b * segments->queries; i < (b + 1) * segments->queries; i++) {
            look_up(runs, count, segments->query_ids[i], &segments->first[i], &segments->end[i]);
        }
    }
}

int32_t mha_mask_set_segments(mha_mask *mask,
                              int64_t batch,
                              int64_t queries,
                              const int64_t *query_ids,
                              int64_t keys,
                              const int64_t *key_ids,
                              mha_error *err)
{
    MHA_TRY(mha__mask_check_table(mask, batch, queries, query_ids, "query_ids", err));
    MHA_TRY(mha__mask_check_table(mask, batch, keys, key_ids, "key_ids", err));
    int64_t bytes = 0;
    MHA_CHECK(err, mha__product_fits(keys, 1, sizeof(struct run), &bytes), MHA_ERROR_TOO_LARGE,
              "segments of %lld keys pass 2^63 bytes", (long long)keys);
    struct run *runs = mha__memory_allocate((size_t)bytes);
    MHA_CHECK(err, runs, MHA_ERROR_OUT_OF_MEMORY, "no memory to sort %lld key ids",
              (long long)keys);
    const int64_t each = batch * queries;
    struct mha__mask_copy copies[] = {{each, query_ids, NULL},
                                      {batch * keys, key_ids, NULL},
                                      {each, NULL, NULL},
                                      {each, NULL, NULL}};
    const int32_t status = mha__mask_copy_all(copies, 4, err);
    if (status != MHA_OK) {
        mha__memory_release(runs);
        return status;
    }
    struct mha__segments *segments = &mask->rules.segments;
    mha__mask_take(&segments->query_ids, copies[0].copy);
    mha__mask_take(&segments->key_ids, copies[1].copy);
    mha__mask_take(&segments->first, copies[2].copy);
    mha__mask_take(&segments->end, copies[3].copy);
    segments->batch = batch;
    segments->queries = queries;
    segments->keys = keys;
    segments->scattered = false;
    find_spans(segments, runs);
    mha__memory_release(runs);
    return mha__error_clear(err);
}
