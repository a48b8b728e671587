/* stream.cuh - streams weights: a warp walks over groups of tiles (tiling.h) with the loads of the
 * next group always in flight, also across the ends of tiles.
 *
 * In flight are 8 loads of 16 bytes a lane, 4 KB a warp. 16 warps on an SM make 64 KB, twice the
 * amount that 1 us of latency at 4.3 TB/s over 132 SMs needs (33 KB). */
#pragma once

#include "kernels/cuda/weights/fragments.cuh"

/* The place of a warp: a tile, a group of its rows, and this lane's rows g and g + 8. It moves with
 * the group, so that loads have constant offsets and no registers of their own. */
template <enum dtype D> struct place {
    typename format<D>::Row known;
    uint32_t tile, group;
    const uint8_t *row[2]; /* this lane's first byte of the group */
    int32_t left;          /* bytes of a row from there on; 0 or less: none */
};

/* The places that a warp visits: groups from + every.. below `to`, of tiles in steps. */
struct weight_walk {
    uint32_t tile_step, tiles, from, every, to;
};

/* Row g of half i of a tile; a lane without such a row reads another one, for sums that are not
 * read. */
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
        walk.to) /* only here, so that a loop over groups keeps no registers for it */
        place_tile<D>(place, j, walk, here_only(place->tile + walk.tile_step));
}

/* Two words of a lane, one of each of its rows. */
struct words {
    uint4 a, b;
};

template <enum dtype D> DEVICE struct words place_load(const struct place<D> &place, int u)
{
    bool valid = place.left > u * CHUNK;
    return {load_once_if(place.row[0] + u * CHUNK, valid),
            load_once_if(place.row[1] + u * CHUNK, valid)};
}

/* Prefetches the lines of a group, one of its 32 lines a lane. */
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

/* Loads the first group. It reads weights only, so it may stand before wait_for_inputs(). */
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

/* Adds the group at the stream's place to the sums, and moves on. Each used word frees its
 * registers for a word of the next group. x: shared memory, from the row's first group on. */
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

/* The view of a lane: word 0 of row g, or of the last row. A lane without a row adds into sums that
 * are not read. */
DEVICE struct x_view x_lane(const uint8_t *x, uint32_t stride, uint32_t rows)
{
    uint32_t lane = threadIdx.x % WARP;
    return {x + min(lane / 4, rows - 1) * stride + lane % 4 * 16, stride};
}
