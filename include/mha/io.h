/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MHA_IO_H
#define MHA_IO_H

/*
 * libmha_io: weights and arrays in files. A component of its own (link mha::io or -lmha_io); the
 * core library knows no file format. Files are untrusted: whatever is wrong with one is a status
 * and a sentence with its path, and nothing is allocated on a file's word before it was checked.
 */
#include <mha/layer.h>

#ifndef MHA_IO_API
#define MHA_IO_API MHA_API
#endif

MHA_BEGIN_DECLS

/*
 * How a family of models names the tensors of an attention layer, after the prefix. Weights are
 * stored [out, in] except where said.
 */

/* torch.nn.MultiheadAttention: in_proj_weight and in_proj_bias, rows q, k, v; or q_proj_weight,
 * k_proj_weight, v_proj_weight and in_proj_bias. With it out_proj.weight, out_proj.bias. */
#define MHA_SCHEME_TORCH 0
/* self.query, self.key, self.value, output.dense, each with .weight and .bias. */
#define MHA_SCHEME_BERT 1
/* c_attn.weight [in, q k v] and c_proj.weight [in, out]; c_attn.bias, c_proj.bias. */
#define MHA_SCHEME_GPT2 2
/* q_proj, k_proj, v_proj, o_proj, each with .weight and perhaps .bias; q and k turn by rotary positions, which
 * are facts of the config: mha_io_read_config sets halves over the whole head and base 10000, for another
 * base (rope_theta) call mha_config_set_rotary. */
#define MHA_SCHEME_LLAMA 3

/** The id of a scheme by name ("torch", "bert", "gpt2", "llama"); MHA_ERROR_UNKNOWN_ID, or
 * MHA_ERROR_NULL_ARGUMENT for NULL. */
MHA_IO_API int32_t mha_io_scheme(const char *name);

/** A safetensors file, opened and checked as a whole. Threads: any number of readers. */
typedef struct mha_io_safetensors mha_io_safetensors;

/**
 * Opens a safetensors file (https://github.com/huggingface/safetensors#format: 8 bytes header
 * length, little-endian; a JSON header; data). Every entry is checked: types, shapes, offsets,
 * overlaps, holes, sizes. Headers beyond 100 MB and names with a NUL in them are refused.
 * The file stays open until it is closed here; numbers are read from it when they are asked for.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  path or out is NULL
 * @retval MHA_ERROR_FILE_ACCESS    not a readable regular file
 * @retval MHA_ERROR_FILE_FORMAT    not safetensors, or damaged
 * @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL, as after every failure
 */
MHA_IO_API int32_t mha_io_safetensors_open(const char *path,
                                           mha_io_safetensors **out,
                                           mha_error *err);

/**
 * The same over size bytes in memory, which must stay valid until it is closed.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  out is NULL, or data is and size is not 0
 * @retval MHA_ERROR_SHAPE          size is negative
 * @retval MHA_ERROR_FILE_FORMAT    not safetensors, or damaged
 * @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL, as after every failure
 */
MHA_IO_API int32_t mha_io_safetensors_open_memory(const void *data,
                                                  int64_t size,
                                                  mha_io_safetensors **out,
                                                  mha_error *err);

/** Closes the file; NULL is fine. */
MHA_IO_API void mha_io_safetensors_close(mha_io_safetensors *file);

/** How many tensors the file has. MHA_ERROR_NULL_ARGUMENT for NULL. */
MHA_IO_API int64_t mha_io_safetensors_count(const mha_io_safetensors *file);

/**
 * The name of tensor index, NUL-terminated UTF-8, valid until the file is closed; its bytes go to
 * length, which may be NULL. Tensors are numbered in the order of their data. NULL when file is
 * NULL or index out of range.
 */
MHA_IO_API const char *
mha_io_safetensors_name(const mha_io_safetensors *file, int64_t index, int64_t *length);

/**
 * The rank of tensor index, at most 64; stores up to cap sizes in shape, (NULL, 0) is fine.
 * Negative: MHA_ERROR_NULL_ARGUMENT, or MHA_ERROR_SHAPE when index is out of range.
 */
MHA_IO_API int32_t mha_io_safetensors_shape(const mha_io_safetensors *file,
                                            int64_t index,
                                            int64_t *shape,
                                            int32_t cap);

/**
 * Reads a tensor as float32 (from F32, F16 or BF16, exactly: subnormals, infinities, the bits of
 * NaNs).
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  file is NULL, or data is and count is not 0
 * @retval MHA_ERROR_SHAPE          index out of range, or count is not the tensor's
 * @retval MHA_ERROR_FILE_FORMAT    another element type
 * @retval MHA_ERROR_FILE_ACCESS    the file was cut since it was opened, or reading fails; only if
 *                                  that happens in the middle of this call is part of data written
 */
MHA_IO_API int32_t mha_io_safetensors_read(
    const mha_io_safetensors *file, int64_t index, float *data, int64_t count, mha_error *err);

/**
 * Sets every weight and bias of the projections of layer from the tensors prefix + name of a scheme. An absent bias is fine
 * only if the layer has none; a bias in the file that the layer lacks, missing and contradicting
 * tensors are refused by name. So are bias_k and bias_v (torch), self.distance_embedding.weight (BERT) and
 * q_norm.weight and k_norm.weight (llama), which would change the numbers; other tensors under the prefix
 * are left alone.
 * On failure the layer is as before.
 * Memory    all of the layer's numbers once more while it loads.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  file, layer or prefix is NULL ("" is a prefix)
 * @retval MHA_ERROR_UNKNOWN_ID     unknown scheme
 * @retval MHA_ERROR_FILE_TENSOR    a tensor is missing or one too many, or two sets contradict
 * @retval MHA_ERROR_SHAPE          a tensor's shape is not the parameter's
 * @retval MHA_ERROR_FILE_FORMAT    a tensor is not F32, F16 or BF16
 * @retval MHA_ERROR_FILE_ACCESS    the file was cut since it was opened, or reading fails
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_IO_API int32_t mha_io_load_layer(const mha_io_safetensors *file,
                                     int32_t scheme,
                                     const char *prefix,
                                     mha_layer *layer,
                                     mha_error *err);

/**
 * A config for the layer under prefix: widths and biases from the tensors' shapes, heads and
 * kv_heads (0: as heads) from the caller. All four projections must be there.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  file, prefix or out is NULL
 * @retval MHA_ERROR_UNKNOWN_ID     unknown scheme
 * @retval MHA_ERROR_HEAD_COUNT     heads < 1, kv_heads that do not divide them, or features that
 *                                  do not divide into such heads
 * @retval MHA_ERROR_FILE_TENSOR    a weight is missing, or two sets contradict
 * @retval MHA_ERROR_SHAPE          a weight is no matrix, or two shapes contradict
 * @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL, as after every failure
 */
MHA_IO_API int32_t mha_io_read_config(const mha_io_safetensors *file,
                                      int32_t scheme,
                                      const char *prefix,
                                      int64_t heads,
                                      int64_t kv_heads,
                                      mha_config **out,
                                      mha_error *err);

/** A .npy array in memory, as float32. Threads: any number of readers. */
typedef struct mha_io_npy mha_io_npy;

/**
 * Reads a .npy file (NumPy format 1, 2 and 3; NEP 1) of little- or big-endian f2, f4 or f8, C or
 * Fortran order, into row-major float32. f2 and f4 keep every bit, f8 is rounded to nearest; a
 * finite number beyond float32 is refused.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  path or out is NULL
 * @retval MHA_ERROR_FILE_ACCESS    not a readable regular file
 * @retval MHA_ERROR_FILE_FORMAT    not a .npy file, another type, more than 32 dimensions, more or
 *                                  fewer bytes than its header says
 * @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL, as after every failure
 */
MHA_IO_API int32_t mha_io_npy_read(const char *path, mha_io_npy **out, mha_error *err);

/**
 * The same from size bytes in memory, which are not needed afterwards.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  out is NULL, or bytes is and size is not 0
 * @retval MHA_ERROR_SHAPE          size is negative
 * @retval MHA_ERROR_FILE_FORMAT    as mha_io_npy_read
 * @retval MHA_ERROR_OUT_OF_MEMORY  *out is NULL, as after every failure
 */
MHA_IO_API int32_t mha_io_npy_read_memory(const void *bytes,
                                          int64_t size,
                                          mha_io_npy **out,
                                          mha_error *err);

/** Frees the array; NULL is fine. */
MHA_IO_API void mha_io_npy_destroy(mha_io_npy *array);

/** The rank, at most 32; stores up to cap sizes, (NULL, 0) is fine. MHA_ERROR_NULL_ARGUMENT for
 * NULL. */
MHA_IO_API int32_t mha_io_npy_shape(const mha_io_npy *array, int64_t *shape, int32_t cap);

/** How many numbers. MHA_ERROR_NULL_ARGUMENT for NULL. */
MHA_IO_API int64_t mha_io_npy_count(const mha_io_npy *array);

/** The numbers, row-major; valid until destroyed. NULL for NULL. */
MHA_IO_API const float *mha_io_npy_data(const mha_io_npy *array);

/**
 * Writes row-major float32 as a .npy file, format 1.0, '<f4', bit for bit. An existing file is
 * replaced at once, by rename (so its folder must be writable), or left as it was. A link is
 * followed; what is there but is no regular file is refused.
 * @retval MHA_OK
 * @retval MHA_ERROR_NULL_ARGUMENT  path is NULL; shape is and rank > 0; data is and no size is 0
 * @retval MHA_ERROR_SHAPE          rank outside 0 .. 32 or a negative size
 * @retval MHA_ERROR_TOO_LARGE      the bytes pass 2^63
 * @retval MHA_ERROR_FILE_ACCESS    the file cannot be written
 * @retval MHA_ERROR_OUT_OF_MEMORY
 */
MHA_IO_API int32_t mha_io_npy_write(
    const char *path, int32_t rank, const int64_t *shape, const float *data, mha_error *err);

MHA_END_DECLS
#endif
