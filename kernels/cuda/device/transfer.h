/* transfer.h - copies host data to the device at the speed of the bus.
 *
 * Host threads fill one pinned chunk while the chunk before it is sent. So the caller's memory may
 * be reused or unmapped as soon as a function returns, and every later operation sees the data. */
#pragma once

#include "kernels/cuda/device/runtime.h"

/* Make the pinned chunks when the back end is opened, and free them when it is closed. */
void transfer_open(struct backend *backend);
void transfer_close(struct backend *backend);

/* to[bytes] = from[bytes], as cuda_write. */
void transfer_upload(struct backend *backend, void *to, const void *from, size_t bytes);

/* Copies rows of row_bytes bytes. Rows of `from` have no gaps; rows of `to` are `stride` bytes
 * apart, and the bytes between them become zero. Unless NULL, look(ctx, part, bytes) is called with
 * each part of `from` that was read, from several threads at once. */
typedef void row_looker(void *ctx, const void *part, size_t bytes);
void transfer_upload_rows(struct backend *backend, void *to, size_t stride, const void *from,
                        size_t row_bytes, size_t rows, row_looker *look, void *ctx);

/* transfer_upload_rows() for rows that are computed. make(ctx, first, count, out) writes all count
 * * stride bytes of rows first .. first + count - 1 to out, including the padding, which is not
 * cleared before. Several threads of backend.pool call make() at once, each for its own rows. */
typedef void row_maker(void *ctx, size_t first, size_t count, void *out);
void transfer_upload_made(struct backend *backend, void *to, size_t stride, size_t rows,
                          row_maker *make, void *ctx);
