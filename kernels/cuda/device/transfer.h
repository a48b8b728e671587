/* transfer.h - host data to the device at the speed of the bus.
 *
 * The host's threads fill one pinned chunk while the one before it travels, so a caller's memory
 * may be reused or unmapped as soon as a function returns, and the data are there for every
 * operation that is called afterwards.
 */
#ifndef KERNELS_CUDA_DEVICE_TRANSFER_H
#define KERNELS_CUDA_DEVICE_TRANSFER_H

#include "kernels/cuda/device/runtime.h"

/* Made at open, given back at close. */
void transfer_open(struct backend *b);
void transfer_close(struct backend *b);

/* to[bytes] = from. The same as `write`. */
void transfer_upload(struct backend *b, void *to, const void *from, size_t bytes);

/* Row i of `to` begins at i * stride bytes and gets row_bytes of `from`, where rows lie close; the
 * stride - row_bytes bytes behind it become zero. look(ctx, part, bytes), unless NULL, is called
 * with each part of `from` when it was just read, from several threads at once. */
typedef void row_looker(void *ctx, const void *part, size_t bytes);
void transfer_upload_rows(struct backend *b, void *to, size_t stride, const void *from,
                        size_t row_bytes, size_t rows, row_looker *look, void *ctx);

/* The same with rows that are made on the way: make(ctx, first, count, out) writes all count *
 * stride bytes of rows first.. to out, padding included: what it leaves is not zero. It is called
 * from several threads of backend.pool at once, each with rows of its own. */
typedef void row_maker(void *ctx, size_t first, size_t count, void *out);
void transfer_upload_made(struct backend *b, void *to, size_t stride, size_t rows, row_maker *make,
                        void *ctx);

#endif
