/* role.c - the table of roles: name, kind of tensor, whether each layer has one, and the two sizes
 * of its shape. All functions read this table, so a new tensor of the block needs a row here and a
 * name in the families. */
#include "lib/checkpoint/role.h"

/* BIAS: bias of q, k or v. TERM: a vector of a mixer, or the bias of a router. */
enum kind { MATRIX, GAIN, BIAS, TERM };
enum { SIX = 1 << MIXER_RWKV6, SEVEN = 1 << MIXER_RWKV7 };
struct row {
    const char *name;
    int per_layer;
    enum kind kind;
    enum role_along rows, cols;
    int mixers; /* 1 << enum mixer for each mixer that has the role; 0: a role of no mixer */
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

const char *role_name(enum role role)
{
    return table[role].name;
}

int role_is_norm(enum role role)
{
    return table[role].kind == GAIN;
}

int role_is_vector(enum role role)
{
    return table[role].kind != MATRIX;
}

int role_is_low_rank(enum role role)
{
    return table[role].rows == ALONG_RANK || table[role].cols == ALONG_RANK;
}

int role_per_layer(enum role role)
{
    return table[role].per_layer;
}

/* 1: a role of a mixture of experts, which the first config.dense layers lack. */
static int is_mixed(enum role role)
{
    return role == ROLE_GATE || role == ROLE_UP || role == ROLE_DOWN || role == ROLE_ROUTER_BIAS ||
           (role >= ROLE_ROUTER && role <= ROLE_SHARED_DOWN);
}

size_t role_first(const struct config *config, enum role role)
{
    return is_mixed(role) ? config->dense : 0;
}

int role_has(const struct config *config, enum role role, size_t layer)
{
    const size_t first = role_first(config, role);
    return layer >= first && layer - first < role_layers(config, role);
}

size_t role_layers(const struct config *config, enum role role)
{
    if (table[role].kind == BIAS && !config->qkv_bias)
        return 0;
    if ((role == ROLE_FUSE || role == ROLE_FUSE_NORM) && !config->taps)
        return 0;
    if (config->taps &&
        ((role == ROLE_EMBED && !config->embeds) || (role == ROLE_HEAD && !config->chains)))
        return 0;
    if ((role == ROLE_Q_NORM || role == ROLE_K_NORM) && !config->qk_norm)
        return 0;
    if (role >= ROLE_CROSS_NORM && role <= ROLE_CROSS_O && !config->latents)
        return 0;
    if ((role == ROLE_ROUTER && !config->experts) || (role == ROLE_ROUTER_BIAS && !config->groups))
        return 0;
    if (role >= ROLE_SHARED_GATE && role <= ROLE_SHARED_DOWN && !config->shared)
        return 0;
    if (role >= ROLE_DENSE_GATE && role <= ROLE_DENSE_DOWN)
        return config->dense;
    if (table[role].mixers && !(table[role].mixers >> config->mixer & 1))
        return 0;
    return table[role].per_layer ? config->layers - role_first(config, role) : 1;
}

size_t role_each(const struct config *config, enum role role)
{
    return config->experts && (role == ROLE_GATE || role == ROLE_UP || role == ROLE_DOWN)
               ? config->experts
               : 1;
}

size_t role_tensors(const struct config *config, enum role role)
{
    return role_layers(config, role) * role_each(config, role);
}

size_t role_number(const struct config *config, enum role role, size_t layer)
{
    return (layer - role_first(config, role)) * role_each(config, role);
}

size_t role_layer(const struct config *config, enum role role, size_t number)
{
    return role_first(config, role) + number / role_each(config, role);
}

size_t role_tensors_most(const struct config *config)
{
    const size_t experts = role_tensors(config, ROLE_GATE);
    return experts > config->layers ? experts : config->layers;
}

static size_t size_of(const struct config *config, enum role_along along)
{
    const size_t sizes[] = {[ALONG_ONE] = 1,
                            [ALONG_WIDTH] = config->width,
                            [ALONG_FFN] = config->ffn,
                            [ALONG_VOCAB] = config->vocab,
                            [ALONG_QUERY] = config->heads * config->head_dim,
                            [ALONG_KEY] = config->kv_heads * config->head_dim,
                            [ALONG_HEAD] = config->head_dim,
                            [ALONG_RANK] = config->rank,
                            [ALONG_EXPERTS] = config->experts,
                            [ALONG_SHARED] = config->shared,
                            [ALONG_DENSE] = config->dense_ffn,
                            [ALONG_TAPS] = config->taps * config->width,
                            [ALONG_READ] = (1 + (size_t)config->chains) * config->width,
                            [ALONG_ANSWERS] = config_answers(config)};
    return sizes[along];
}

void role_shape(const struct config *config, enum role role, size_t *rows, size_t *cols)
{
    *rows = size_of(config, table[role].rows);
    *cols = size_of(config, table[role].cols);
}

enum role_along role_rows(enum role role)
{
    return table[role].rows;
}

enum role_along role_cols(enum role role)
{
    return table[role].cols;
}
