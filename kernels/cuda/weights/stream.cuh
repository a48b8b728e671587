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
DEVICE const uint8_t *place_row(const struct product_job &j, const struct weight_tile &t, int i)
{
    uint32_t g = threadIdx.x % WARP / 4, half = g < t.count[i] ? (uint32_t)i : 0;
    const struct operand &m = j.w[half ? t.matrix[1] : t.matrix[0]];
    uint32_t row = (half ? t.row[1] : t.row[0]) + (g < t.count[0] ? g : 0);
    return m.code + (size_t)(m.begin + row) * j.stride;
}

template <enum dtype D> DEVICE void place_tile(struct place<D> *p, const struct product_job &j,
                                               const struct weight_walk &w, uint32_t tile)
{
    uint32_t at = threadIdx.x % 4 * 16 + w.from * GROUP;
    *p = {};
    struct weight_tile t = {};
    p->tile = tile;
    p->group = w.from;
    if (tile < w.tiles && w.from < w.to) {
        t = tile_at(&j, tile);
        p->row[0] = place_row(j, t, 0) + at;
        p->row[1] = place_row(j, t, 1) + at;
        p->left = (int32_t)(j.stride - at);
    }
    p->known = format<D>::row(j, t);
}

template <enum dtype D>
DEVICE void place_next(struct place<D> *p, const struct product_job &j, const struct weight_walk &w)
{
    p->group += w.every;
    p->row[0] += w.every * GROUP;
    p->row[1] += w.every * GROUP;
    p->left -= (int32_t)(w.every * GROUP);
    if (p->group >= w.to) /* only here, so that a loop over groups keeps no registers for it */
        place_tile<D>(p, j, w, here_only(p->tile + w.tile_step));
}

/* Two words of a lane, one of each of its rows. */
struct words {
    uint4 a, b;
};

template <enum dtype D> DEVICE struct words place_load(const struct place<D> &p, int u)
{
    bool valid = p.left > u * CHUNK;
    return {load_once_if(p.row[0] + u * CHUNK, valid), load_once_if(p.row[1] + u * CHUNK, valid)};
}

/* Prefetches the lines of a group, one of its 32 lines a lane. */
template <enum dtype D> DEVICE void place_prefetch(const struct place<D> &p)
{
    int q = threadIdx.x % 4, at = (q & 1) * 2 * CHUNK;
    if (p.left > at)
        prefetch((q >= 2 ? p.row[1] : p.row[0]) + at);
}

template <enum dtype D> struct stream {
    struct place<D> at;
    struct words ring[RING];
    typename format<D>::More more;
};

/* Loads the first group. It reads weights only, so it may stand before wait_for_inputs(). */
template <enum dtype D> DEVICE void stream_start(struct stream<D> *s, const struct product_job &j,
                                                 const struct weight_walk &w, uint32_t tile)
{
    place_tile<D>(&s->at, j, w, tile);
#pragma unroll
    for (int u = 0; u < RING; u++)
        s->ring[u] = place_load(s->at, u);
    s->more = format<D>::more(j, s->at.known, s->at.group);
    struct place<D> next = s->at;
    place_next<D>(&next, j, w);
    place_prefetch(next);
}

/* Adds the group at the stream's place to the sums, and moves on. Each used word frees its
 * registers for a word of the next group. x: shared memory, from the row's first group on. */
template <enum dtype D, int NT>
DEVICE void stream_step(struct stream<D> *s, typename format<D>::State *state,
                        typename format<D>::Sum (*sum)[4], const struct product_job &j,
                        const struct weight_walk &w, struct x_view x, uint32_t x_first)
{
    const uint32_t chunk = group_x_bytes(D) / RING;
    x.at += (s->at.group - x_first) * group_x_bytes(D);
    format<D>::begin(*state, s->more);
    place_next<D>(&s->at, j, w);
    s->more = format<D>::more(j, s->at.known, s->at.group);
#pragma unroll
    for (int u = 0; u < RING; u++) {
        format<D>::template multiply<NT>(*state, sum, s->ring[u].a, s->ring[u].b, u, x);
        s->ring[u] = place_load(s->at, u);
        x.at += chunk;
    }
}

/* The view of a lane: word 0 of row g, or of the last row. A lane without a row adds into sums that
 * are not read. */
DEVICE struct x_view x_lane(const uint8_t *x, uint32_t stride, uint32_t rows)
{
    uint32_t lane = threadIdx.x % WARP;
    return {x + min(lane / 4, rows - 1) * stride + lane % 4 * 16, stride};
}
