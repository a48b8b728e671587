/* transfer.h - host data to the device at the speed of the bus.
 *
 * Host threads fill one pinned chunk while the chunk before it is sent. So the caller's memory may
 * be reused or unmapped as soon as a function returns, and every later operation sees the data. */
#pragma once

#include "kernels/cuda/device/runtime.h"

/* Made at open, freed at close. */
void transfer_open(struct backend *backend);
void transfer_close(struct backend *backend);

/* to[bytes] = from. The same as `write`. */
void transfer_upload(struct backend *backend, void *to, const void *from, size_t bytes);

/* Row i of `to` starts at i * stride bytes and gets row_bytes of `from`, where rows have no gaps;
 * the stride - row_bytes bytes behind it become zero. look(ctx, part, bytes), unless NULL, is
 * called with each part of `from` that was read, from several threads at once. */
typedef void row_looker(void *ctx, const void *part, size_t bytes);
void transfer_upload_rows(struct backend *backend, void *to, size_t stride, const void *from,
                        size_t row_bytes, size_t rows, row_looker *look, void *ctx);

/* transfer_upload_rows() for rows that are computed: make(ctx, first, count, out) writes all
 * count * stride bytes of rows first.. to out, including the padding, which is not cleared before.
 * Several threads of backend.pool call it at once, each for its own rows. */
typedef void row_maker(void *ctx, size_t first, size_t count, void *out);
void transfer_upload_made(struct backend *backend, void *to, size_t stride, size_t rows,
                          row_maker *make, void *ctx);
