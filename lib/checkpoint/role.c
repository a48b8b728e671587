/* role.c - the table of roles: name, kind of tensor, whether each layer has one, and the two sizes
 * of its shape. All functions read this table, so a new tensor of the block needs a row here and a
 * name in the families. */
#include "lib/checkpoint/role.h"

enum kind { MATRIX, GAIN, BIAS, TERM /* a vector of a mixer */ };
enum { SIX = 1 << MIXER_RWKV6, SEVEN = 1 << MIXER_RWKV7 };
struct row {
    const char *name;
    int per_layer;
    enum kind kind;
    enum role_along rows, cols;
    int mixers; /* 1 << enum mixer for each mixer that has it; 0: it belongs to no mixer */
};
static const struct row table[ROLE_COUNT] = {
    [ROLE_EMBED] = {"embed", 0, MATRIX, ALONG_VOCAB, ALONG_WIDTH, 0},
    [ROLE_ATTN_NORM] = {"attn_norm", 1, GAIN, ALONG_WIDTH, ALONG_ONE, 0},
    [ROLE_Q] = {"q", 1, MATRIX, ALONG_QUERY, ALONG_READ, 0},
    [ROLE_K] = {"k", 1, MATRIX, ALONG_KEY, ALONG_READ, 0},
    [ROLE_V] = {"v", 1, MATRIX, ALONG_KEY, ALONG_READ, 0},
    [ROLE_O] = {"o", 1, MATRIX, ALONG_WIDTH, ALONG_QUERY, 0},
    [ROLE_FFN_NORM] = {"ffn_norm", 1, GAIN, ALONG_WIDTH, ALONG_ONE, 0},
    [ROLE_GATE] = {"gate", 1, MATRIX, ALONG_FFN, ALONG_WIDTH, 0},
    [ROLE_UP] = {"up", 1, MATRIX, ALONG_FFN, ALONG_WIDTH, 0},
    [ROLE_DOWN] = {"down", 1, MATRIX, ALONG_WIDTH, ALONG_FFN, 0},
    [ROLE_NORM] = {"norm", 0, GAIN, ALONG_WIDTH, ALONG_ONE, 0},
    [ROLE_HEAD] = {"head", 0, MATRIX, ALONG_ANSWERS, ALONG_WIDTH, 0},
    [ROLE_Q_BIAS] = {"q_bias", 1, BIAS, ALONG_QUERY, ALONG_ONE, 0},
    [ROLE_K_BIAS] = {"k_bias", 1, BIAS, ALONG_KEY, ALONG_ONE, 0},
    [ROLE_V_BIAS] = {"v_bias", 1, BIAS, ALONG_KEY, ALONG_ONE, 0},
    [ROLE_Q_NORM] = {"q_norm", 1, GAIN, ALONG_HEAD, ALONG_ONE, 0},
    [ROLE_K_NORM] = {"k_norm", 1, GAIN, ALONG_HEAD, ALONG_ONE, 0},
    [ROLE_CROSS_NORM] = {"cross_norm", 1, GAIN, ALONG_WIDTH, ALONG_ONE, 0},
    [ROLE_CROSS_Q] = {"cross_q", 1, MATRIX, ALONG_QUERY, ALONG_WIDTH, 0},
    [ROLE_CROSS_K] = {"cross_k", 1, MATRIX, ALONG_KEY, ALONG_WIDTH, 0},
    [ROLE_CROSS_V] = {"cross_v", 1, MATRIX, ALONG_KEY, ALONG_WIDTH, 0},
    [ROLE_CROSS_O] = {"cross_o", 1, MATRIX, ALONG_WIDTH, ALONG_QUERY, 0},
    [ROLE_SHIFT_R] = {"shift_r", 1, TERM, ALONG_WIDTH, ALONG_ONE, SIX | SEVEN},
    [ROLE_SHIFT_W] = {"shift_w", 1, TERM, ALONG_WIDTH, ALONG_ONE, SIX | SEVEN},
    [ROLE_SHIFT_K] = {"shift_k", 1, TERM, ALONG_WIDTH, ALONG_ONE, SIX | SEVEN},
    [ROLE_SHIFT_V] = {"shift_v", 1, TERM, ALONG_WIDTH, ALONG_ONE, SIX | SEVEN},
    [ROLE_SHIFT_G] = {"shift_g", 1, TERM, ALONG_WIDTH, ALONG_ONE, SIX | SEVEN},
    [ROLE_SHIFT_A] = {"shift_a", 1, TERM, ALONG_WIDTH, ALONG_ONE, SEVEN},
    [ROLE_SHIFT_X] = {"shift_x", 1, TERM, ALONG_WIDTH, ALONG_ONE, SIX},
    [ROLE_DECAY] = {"decay", 1, TERM, ALONG_QUERY, ALONG_ONE, SIX | SEVEN},
    [ROLE_BONUS] = {"bonus", 1, TERM, ALONG_QUERY, ALONG_ONE, SIX | SEVEN},
    [ROLE_HEADS_GAIN] = {"heads_gain", 1, GAIN, ALONG_QUERY, ALONG_ONE, SIX | SEVEN},
    [ROLE_HEADS_BIAS] = {"heads_bias", 1, TERM, ALONG_QUERY, ALONG_ONE, SIX | SEVEN},
    [ROLE_RATE] = {"rate", 1, TERM, ALONG_QUERY, ALONG_ONE, SEVEN},
    [ROLE_FIRST] = {"first", 1, TERM, ALONG_QUERY, ALONG_ONE, SEVEN},
    [ROLE_KEY_SCALE] = {"key_scale", 1, TERM, ALONG_QUERY, ALONG_ONE, SEVEN},
    [ROLE_KEY_RATE] = {"key_rate", 1, TERM, ALONG_QUERY, ALONG_ONE, SEVEN},
    [ROLE_LERP_DOWN_R] = {"lerp_down_r", 1, MATRIX, ALONG_RANK, ALONG_WIDTH, SIX},
    [ROLE_LERP_DOWN_W] = {"lerp_down_w", 1, MATRIX, ALONG_RANK, ALONG_WIDTH, SIX},
    [ROLE_LERP_DOWN_K] = {"lerp_down_k", 1, MATRIX, ALONG_RANK, ALONG_WIDTH, SIX},
    [ROLE_LERP_DOWN_V] = {"lerp_down_v", 1, MATRIX, ALONG_RANK, ALONG_WIDTH, SIX},
    [ROLE_LERP_DOWN_G] = {"lerp_down_g", 1, MATRIX, ALONG_RANK, ALONG_WIDTH, SIX},
    [ROLE_LERP_UP_R] = {"lerp_up_r", 1, MATRIX, ALONG_WIDTH, ALONG_RANK, SIX},
    [ROLE_LERP_UP_W] = {"lerp_up_w", 1, MATRIX, ALONG_WIDTH, ALONG_RANK, SIX},
    [ROLE_LERP_UP_K] = {"lerp_up_k", 1, MATRIX, ALONG_WIDTH, ALONG_RANK, SIX},
    [ROLE_LERP_UP_V] = {"lerp_up_v", 1, MATRIX, ALONG_WIDTH, ALONG_RANK, SIX},
    [ROLE_LERP_UP_G] = {"lerp_up_g", 1, MATRIX, ALONG_WIDTH, ALONG_RANK, SIX},
    [ROLE_MIX_GATE] = {"mix_gate", 1, MATRIX, ALONG_QUERY, ALONG_WIDTH, SIX},
    [ROLE_DECAY_DOWN] = {"decay_down", 1, MATRIX, ALONG_RANK, ALONG_WIDTH, SIX | SEVEN},
    [ROLE_DECAY_UP] = {"decay_up", 1, MATRIX, ALONG_QUERY, ALONG_RANK, SIX | SEVEN},
    [ROLE_RATE_DOWN] = {"rate_down", 1, MATRIX, ALONG_RANK, ALONG_WIDTH, SEVEN},
    [ROLE_RATE_UP] = {"rate_up", 1, MATRIX, ALONG_QUERY, ALONG_RANK, SEVEN},
    [ROLE_FIRST_DOWN] = {"first_down", 1, MATRIX, ALONG_RANK, ALONG_WIDTH, SEVEN},
    [ROLE_FIRST_UP] = {"first_up", 1, MATRIX, ALONG_QUERY, ALONG_RANK, SEVEN},
    [ROLE_GATE_DOWN] = {"gate_down", 1, MATRIX, ALONG_RANK, ALONG_WIDTH, SEVEN},
    [ROLE_GATE_UP] = {"gate_up", 1, MATRIX, ALONG_QUERY, ALONG_RANK, SEVEN},
    [ROLE_ROUTER] = {"router", 1, MATRIX, ALONG_EXPERTS, ALONG_WIDTH, 0},
    [ROLE_SHARED_GATE] = {"shared_gate", 1, MATRIX, ALONG_SHARED, ALONG_WIDTH, 0},
    [ROLE_SHARED_UP] = {"shared_up", 1, MATRIX, ALONG_SHARED, ALONG_WIDTH, 0},
    [ROLE_SHARED_DOWN] = {"shared_down", 1, MATRIX, ALONG_WIDTH, ALONG_SHARED, 0},
    [ROLE_DENSE_GATE] = {"dense_gate", 1, MATRIX, ALONG_DENSE, ALONG_WIDTH, 0},
    [ROLE_DENSE_UP] = {"dense_up", 1, MATRIX, ALONG_DENSE, ALONG_WIDTH, 0},
    [ROLE_DENSE_DOWN] = {"dense_down", 1, MATRIX, ALONG_WIDTH, ALONG_DENSE, 0},
    [ROLE_ROUTER_BIAS] = {"router_bias", 1, TERM, ALONG_EXPERTS, ALONG_ONE, 0},
    [ROLE_FUSE] = {"fuse", 0, MATRIX, ALONG_WIDTH, ALONG_TAPS, 0},
    [ROLE_FUSE_NORM] = {"fuse_norm", 0, GAIN, ALONG_WIDTH, ALONG_ONE, 0},
};

const char *role_name(enum role r)
{
    return table[r].name;
}

int role_is_norm(enum role r)
{
    return table[r].kind == GAIN;
}

int role_is_vector(enum role r)
{
    return table[r].kind != MATRIX;
}

int role_is_low_rank(enum role r)
{
    return table[r].rows == ALONG_RANK || table[r].cols == ALONG_RANK;
}

int role_per_layer(enum role r)
{
    return table[r].per_layer;
}

/* 1: a role of a mixture of experts, which the first layers may lack. */
static int is_mixed(enum role r)
{
    return r == ROLE_GATE || r == ROLE_UP || r == ROLE_DOWN || r == ROLE_ROUTER_BIAS ||
           (r >= ROLE_ROUTER && r <= ROLE_SHARED_DOWN);
}

size_t role_first(const struct config *c, enum role r)
{
    return is_mixed(r) ? c->dense : 0;
}

int role_has(const struct config *c, enum role r, size_t l)
{
    const size_t first = role_first(c, r);
    return l >= first && l - first < role_layers(c, r);
}

size_t role_layers(const struct config *c, enum role r)
{
    if (table[r].kind == BIAS && !c->qkv_bias)
        return 0;
    if ((r == ROLE_FUSE || r == ROLE_FUSE_NORM) && !c->taps)
        return 0;
    if (c->taps && ((r == ROLE_EMBED && !c->embeds) || (r == ROLE_HEAD && !c->chains)))
        return 0;
    if ((r == ROLE_Q_NORM || r == ROLE_K_NORM) && !c->qk_norm)
        return 0;
    if (r >= ROLE_CROSS_NORM && r <= ROLE_CROSS_O && !c->latents)
        return 0;
    if ((r == ROLE_ROUTER && !c->experts) || (r == ROLE_ROUTER_BIAS && !c->groups))
        return 0;
    if (r >= ROLE_SHARED_GATE && r <= ROLE_SHARED_DOWN && !c->shared)
        return 0;
    if (r >= ROLE_DENSE_GATE && r <= ROLE_DENSE_DOWN)
        return c->dense;
    if (table[r].mixers && !(table[r].mixers >> c->mixer & 1))
        return 0;
    return table[r].per_layer ? c->layers - role_first(c, r) : 1;
}

size_t role_each(const struct config *c, enum role r)
{
    return c->experts && (r == ROLE_GATE || r == ROLE_UP || r == ROLE_DOWN) ? c->experts : 1;
}

size_t role_tensors(const struct config *c, enum role r)
{
    return role_layers(c, r) * role_each(c, r);
}

size_t role_number(const struct config *c, enum role r, size_t l)
{
    return (l - role_first(c, r)) * role_each(c, r);
}

size_t role_layer(const struct config *c, enum role r, size_t number)
{
    return role_first(c, r) + number / role_each(c, r);
}

size_t role_tensors_most(const struct config *c)
{
    const size_t experts = role_tensors(c, ROLE_GATE);
    return experts > c->layers ? experts : c->layers;
}

static size_t size_of(const struct config *c, enum role_along s)
{
    const size_t sizes[] = {[ALONG_ONE] = 1,
                            [ALONG_WIDTH] = c->width,
                            [ALONG_FFN] = c->ffn,
                            [ALONG_VOCAB] = c->vocab,
                            [ALONG_QUERY] = c->heads * c->head_dim,
                            [ALONG_KEY] = c->kv_heads * c->head_dim,
                            [ALONG_HEAD] = c->head_dim,
                            [ALONG_RANK] = c->rank,
                            [ALONG_EXPERTS] = c->experts,
                            [ALONG_SHARED] = c->shared,
                            [ALONG_DENSE] = c->dense_ffn,
                            [ALONG_TAPS] = c->taps * c->width,
                            [ALONG_READ] = (1 + (size_t)c->chains) * c->width,
                            [ALONG_ANSWERS] = config_answers(c)};
    return sizes[s];
}

void role_shape(const struct config *c, enum role r, size_t *rows, size_t *cols)
{
    *rows = size_of(c, table[r].rows);
    *cols = size_of(c, table[r].cols);
}

enum role_along role_rows(enum role r)
{
    return table[r].rows;
}

enum role_along role_cols(enum role r)
{
    return table[r].cols;
}
