/* format_blocks.cuh - blocks of 64 values with 16 levels: NF4, NF4_F32 and FP4 (kernels/quant.h).
 *
 * A byte of two codes becomes a pair of levels by one look-up. Each lane has a table of its own in
 * its own bank of shared memory, 256 words. The sum of 64 values is multiplied by their absmax in
 * fp32. */
#pragma once

#include "kernels/cuda/weights/fragments.cuh"

/* The levels of format D, and the dynamic map, as an argument of kernels. */
template <enum dtype D> struct level_tables {
    float dynamic[256];
    uint16_t level[16];
};

template <enum dtype D> static inline void tables_fill(struct level_tables<D> *tables)
{
    for (int i = 0; i < 256; i++)
        tables->dynamic[i] = dynamic_level[i];
    for (int i = 0; i < 16; i++)
        tables->level[i] = quant_levels_bf16(D)[i];
}

enum { AHEAD = 4 }; /* absmax values that a lane reads for a group */

/* Reads absmax first .. first + n - 1 of a matrix, n <= AHEAD, in two steps: the load (read) and
 * the conversion (unfolded). whole: a row has a multiple of AHEAD absmax. */
template <int CODED> struct absmax_read;

/* absmax as 8-bit codes of the dynamic map. */
template <> struct absmax_read<1> {
    uint32_t codes, first;
    float scale, next_scale, offset;

    DEVICE absmax_read read(const struct operand &operand, uint32_t from, uint32_t n, bool whole)
    {
        absmax_read m = {0, from, 0, 0, 0};
        if (whole)
            m.codes = *reinterpret_cast<const uint32_t *>(operand.absmax + from);
        else
#pragma unroll 1
            for (uint32_t i = 0; i < n; i++)
                m.codes |= (uint32_t)operand.absmax[from + i] << 8 * i;
        m.scale = operand.scale[from / QUANT_SUPER];
        m.next_scale = operand.scale[(from + n - 1) / QUANT_SUPER];
        m.offset = *operand.offset;
        return m;
    }

    DEVICE float unfolded(const absmax_read &m, int i, const float *dynamic)
    {
        bool next = (m.first + (uint32_t)i) / QUANT_SUPER != m.first / QUANT_SUPER;
        float scale = next ? m.next_scale : m.scale;
        return __fadd_rn(m.offset, __fmul_rn(dynamic[m.codes >> 8 * i & 0xff], scale));
    }
};

/* absmax in fp32. */
template <> struct absmax_read<0> {
    float absmax[AHEAD];

    DEVICE absmax_read read(const struct operand &operand, uint32_t from, uint32_t n, bool whole)
    {
        absmax_read m = {{0, 0, 0, 0}};
        if (whole) {
            float4 value = *reinterpret_cast<const float4 *>(operand.scale + from);
            m = {{value.x, value.y, value.z, value.w}};
        } else {
#pragma unroll
            for (uint32_t i = 0; i < AHEAD; i++)
                m.absmax[i] = i < n ? operand.scale[from + i] : 0;
        }
        return m;
    }

    DEVICE float unfolded(const absmax_read &m, int i, const float *)
    {
        return m.absmax[i];
    }
};

template <enum dtype D> struct block_format {
    static constexpr float TOP = 0;
    typedef float Sum;
    typedef level_tables<D> Tables;
    enum { LANES_END = 256 * WARP * 4 };
    typedef absmax_read<D == DTYPE_NF4> More;
    struct Row {
        uint32_t first;  /* index of the first absmax of row g + 8 (q / 2), which this lane reads */
        uint32_t matrix; /* index of the matrix; MATRICES: there is no such row */
    };
    struct State {
        const uint8_t *shared; /* uint32_t pairs[256][WARP], float dynamic[256] */
        float absmax[AHEAD];   /* absmax of this lane's Row, blocks 4 (q % 2) .. 4 (q % 2) + 3 of
                                * the group */
    };

    DEVICE float element(const unsigned char *data, const struct layout *at, size_t row, size_t k)
    {
        const float *scale = reinterpret_cast<const float *>(data + at->scale);
        unsigned pair = data[row * at->stride + k / 2];
        size_t block = (row * at->stride * 2 + k) / QUANT_BLOCK;
        float level = level_of(D, k % 2 ? pair & 15 : pair >> 4);
        if (D != DTYPE_NF4)
            return level * scale[block];
        float offset = *reinterpret_cast<const float *>(data + at->offset);
        float step = __fmul_rn(dynamic_level_of(data[at->absmax + block]),
                               scale[block / QUANT_SUPER]);
        return level * __fadd_rn(offset, step);
    }

    /* Called by all threads; a barrier follows. */
    DEVICE void prepare(uint8_t *shared, const Tables &t)
    {
        uint32_t *to = reinterpret_cast<uint32_t *>(shared);
        float *dynamic = reinterpret_cast<float *>(shared + LANES_END);
        for (uint32_t i = threadIdx.x; i < 256 * WARP; i += blockDim.x) {
            uint32_t c = i / WARP / 2 + i / WARP % 2 * 128; /* the order that pairs_of() needs */
            to[i] = (uint32_t)t.level[c & 15] << 16 | t.level[c >> 4];
        }
        for (uint32_t i = threadIdx.x; i < 256; i += blockDim.x)
            dynamic[i] = t.dynamic[i];
    }

    DEVICE State start(const uint8_t *shared)
    {
        return {shared, {0, 0, 0, 0}};
    }

    DEVICE Row row(const struct product_job &j, const struct weight_tile &tile)
    {
        uint32_t g = threadIdx.x % WARP / 4, h = threadIdx.x % 4 / 2;
        if (g >= (h ? tile.count[1] : tile.count[0]))
            return {0, MATRICES};
        uint32_t matrix = h ? tile.matrix[1] : tile.matrix[0], at = h ? tile.row[1] : tile.row[0];
        return {(j.w[matrix].begin + at + g) * (j.K / QUANT_BLOCK), matrix};
    }

    DEVICE More more(const struct product_job &j, const Row &row, uint32_t group)
    {
        uint32_t blocks = j.K / QUANT_BLOCK, block = group * 8 + threadIdx.x % 2 * AHEAD;
        if (row.matrix == MATRICES || block >= blocks)
            return More();
        uint32_t n = min(blocks - block, (uint32_t)AHEAD); /* blocks beyond the row multiply zeros
                                                            * of x */
        return More::read(j.w[row.matrix], row.first + block, n, blocks % AHEAD == 0);
    }

    DEVICE void begin(State &s, const More &m)
    {
        const float *dynamic = reinterpret_cast<const float *>(s.shared + LANES_END);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            s.absmax[i] = More::unfolded(m, i, dynamic);
    }

    /* Lane q has read codes of block q / 2 of both rows. It exchanges halves with lane q ^ 2, so
     * that it has 16 codes of each block: those of piece 0, 2, 1, 3 for q = 0, 1, 2, 3. */
    DEVICE void swap(uint4 &v)
    {
        bool upper = threadIdx.x & 2;
        uint32_t x = __shfl_xor_sync(EVERY_LANE, upper ? v.x : v.z, 2);
        uint32_t y = __shfl_xor_sync(EVERY_LANE, upper ? v.y : v.w, 2);
        v = upper ? make_uint4(x, y, v.z, v.w) : make_uint4(v.x, v.y, x, y);
    }

    /* Looks up the levels of four bytes c of codes, which is most of the work of a product. The
     * address of a lane's word consists of two bytes: c % 128, and 4 * lane plus the upper bit of
     * c. Two operations compute both bytes for all four c; each look-up then takes one more
     * operation and the load. */
    DEVICE void pairs_of(const State &s, uint32_t p[4], uint32_t codes)
    {
        uint32_t row = codes & 0x7f7f7f7fu;
        uint32_t in_row = (codes & 0x80808080u) | threadIdx.x % WARP * 0x04040404u;
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) /* byte i of both words; the upper two bytes are copies of
                                          * the top bit of `row`, which is 0 */
            p[i] = *reinterpret_cast<const uint32_t *>(
                s.shared + pick_bytes(in_row, row, 0xcc40 + 0x1111 * i));
    }

    DEVICE void pairs(const State &s, uint32_t p[8], uint32_t first, uint32_t second)
    {
        pairs_of(s, p, first);
        pairs_of(s, p + 4, second);
    }

    template <int NT>
    DEVICE void multiply(const State &s, float (*sum)[4], uint4 a, uint4 b, int u,
                         const struct x_view &view)
    {
        swap(a);
        swap(b);
#pragma unroll
        for (int block = 0; block < 2; block++) {
            uint32_t pa[8], pb[8];
            pairs(s, pa, block ? a.z : a.x, block ? a.w : a.y);
            pairs(s, pb, block ? b.z : b.x, block ? b.w : b.y);
            int at = 2 * u + block, from = (int)(threadIdx.x % WARP & ~3u) + at / AHEAD;
            float ma = __shfl_sync(EVERY_LANE, s.absmax[at % AHEAD], from);
            float mb = __shfl_sync(EVERY_LANE, s.absmax[at % AHEAD], from + 2);
#pragma unroll
            for (int i = 0; i < NT; i++) {
                float d[4] = {0, 0, 0, 0};
                uint32_t byte = (uint32_t)block * 2 * CHUNK;
                multiply_pairs(d, pa, pb, x_word(view, i, byte));
                multiply_pairs(d, pa + 4, pb + 4, x_word(view, i, byte + CHUNK));
                sum[i][0] = __fmaf_rn(ma, d[0], sum[i][0]);
                sum[i][1] = __fmaf_rn(ma, d[1], sum[i][1]);
                sum[i][2] = __fmaf_rn(mb, d[2], sum[i][2]);
                sum[i][3] = __fmaf_rn(mb, d[3], sum[i][3]);
            }
        }
    }
};

template <> struct format<DTYPE_NF4> : block_format<DTYPE_NF4> {
};
template <> struct format<DTYPE_NF4_F32> : block_format<DTYPE_NF4_F32> {
};
template <> struct format<DTYPE_FP4> : block_format<DTYPE_FP4> {
};
