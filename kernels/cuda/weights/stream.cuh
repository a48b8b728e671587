/* stream.cuh - streams weights: a warp walks over groups of tiles (tiling.h), and the loads of the
 * next group are always in flight, also when the next group belongs to the next tile.
 *
 * A lane has 8 loads of 16 bytes in flight, a warp 4 KB. 16 warps on an SM make 64 KB, twice the
 * amount that 1 us of latency at 4.3 TB/s over 132 SMs needs (33 KB). */
#pragma once

#include "kernels/cuda/weights/fragments.cuh"

/* The place of a warp in its walk: a tile, a group of K, and the addresses of this lane's rows g
 * and g + 8. The addresses move with the group, so that loads have constant offsets and need no
 * registers of their own. */
template <enum dtype D> struct place {
    typename format<D>::Row known;
    uint32_t tile, group;
    const uint8_t *row[2]; /* addresses of this lane's first byte of the group, in rows g and
                            * g + 8 */
    int32_t left;          /* bytes of a row from the address on; 0 or less: none */
};

/* The places that a warp visits: groups from, from + every, ... below `to`, of every tile_step-th
 * tile. */
struct weight_walk {
    uint32_t tile_step, tiles, from, every, to;
};

/* The address of row g of half i of a tile. A lane without such a row reads another row, and its
 * sums are not used. */
DEVICE const uint8_t *place_row(const struct product_job &j, const struct weight_tile &tile, int i)
{
    uint32_t g = threadIdx.x % WARP / 4, half = g < tile.count[i] ? (uint32_t)i : 0;
    const struct operand &operand = j.w[half ? tile.matrix[1] : tile.matrix[0]];
    uint32_t row = (half ? tile.row[1] : tile.row[0]) + (g < tile.count[0] ? g : 0);
    return operand.code + (size_t)(operand.begin + row) * j.stride;
}

template <enum dtype D> DEVICE void place_tile(struct place<D> *place, const struct product_job &j,
                                               const struct weight_walk &walk, uint32_t tile)
{
    uint32_t at = threadIdx.x % 4 * 16 + walk.from * GROUP;
    *place = {};
    struct weight_tile weight_tile = {};
    place->tile = tile;
    place->group = walk.from;
    if (tile < walk.tiles && walk.from < walk.to) {
        weight_tile = tile_at(&j, tile);
        place->row[0] = place_row(j, weight_tile, 0) + at;
        place->row[1] = place_row(j, weight_tile, 1) + at;
        place->left = (int32_t)(j.stride - at);
    }
    place->known = format<D>::row(j, weight_tile);
}

template <enum dtype D>
DEVICE void place_next(struct place<D> *place, const struct product_job &j,
                       const struct weight_walk &walk)
{
    place->group += walk.every;
    place->row[0] += walk.every * GROUP;
    place->row[1] += walk.every * GROUP;
    place->left -= (int32_t)(walk.every * GROUP);
    if (place->group >=
        walk.to) /* here_only(): a loop over groups keeps no registers for the next tile */
        place_tile<D>(place, j, walk, here_only(place->tile + walk.tile_step));
}

/* Two 16-byte words of a lane, one of each of its rows. */
struct words {
    uint4 a, b;
};

template <enum dtype D> DEVICE struct words place_load(const struct place<D> &place, int u)
{
    bool valid = place.left > u * CHUNK;
    return {load_once_if(place.row[0] + u * CHUNK, valid),
            load_once_if(place.row[1] + u * CHUNK, valid)};
}

/* Prefetches the 32 cache lines of a group, one a lane. */
template <enum dtype D> DEVICE void place_prefetch(const struct place<D> &place)
{
    int q = threadIdx.x % 4, at = (q & 1) * 2 * CHUNK;
    if (place.left > at)
        prefetch((q >= 2 ? place.row[1] : place.row[0]) + at);
}

template <enum dtype D> struct stream {
    struct place<D> at;
    struct words ring[RING];
    typename format<D>::More more;
};

/* Loads the first group. It reads only weights, so it may be called before wait_for_inputs(). */
template <enum dtype D> DEVICE void stream_start(struct stream<D> *stream,
                                                 const struct product_job &j,
                                                 const struct weight_walk &walk, uint32_t tile)
{
    place_tile<D>(&stream->at, j, walk, tile);
#pragma unroll
    for (int u = 0; u < RING; u++)
        stream->ring[u] = place_load(stream->at, u);
    stream->more = format<D>::more(j, stream->at.known, stream->at.group);
    struct place<D> next = stream->at;
    place_next<D>(&next, j, walk);
    place_prefetch(next);
}

/* Adds the products of the group at the stream's place to the sums, and moves on. The registers of
 * each used word take a word of the next group. view: x in shared memory, which begins with group
 * x_first. */
template <enum dtype D, int NT>
DEVICE void stream_step(struct stream<D> *stream, typename format<D>::State *state,
                        typename format<D>::Sum (*sum)[4], const struct product_job &j,
                        const struct weight_walk &walk, struct x_view view, uint32_t x_first)
{
    const uint32_t chunk = group_x_bytes(D) / RING;
    view.at += (stream->at.group - x_first) * group_x_bytes(D);
    format<D>::begin(*state, stream->more);
    place_next<D>(&stream->at, j, walk);
    stream->more = format<D>::more(j, stream->at.known, stream->at.group);
#pragma unroll
    for (int u = 0; u < RING; u++) {
        format<D>::template multiply<NT>(*state, sum, stream->ring[u].a, stream->ring[u].b, u,
                                         view);
        stream->ring[u] = place_load(stream->at, u);
        view.at += chunk;
    }
}

/* The view of a lane: word 0 of row g, or of the last row if g is beyond it; the sums of such a
 * lane are not used. */
DEVICE struct x_view x_lane(const uint8_t *x, uint32_t stride, uint32_t rows)
{
    uint32_t lane = threadIdx.x % WARP;
    return {x + min(lane / 4, rows - 1) * stride + lane % 4 * 16, stride};
}
