/* role.c - one row a role: its name for people, whether each layer has one, what kind of tensor it
 * is, and which two sizes of a config are its shape. Every question about a role is answered from
 * that row, so that a new tensor of the block is a new row here and a name in the families.
 */
#include "lib/checkpoint/role.h"

enum kind { MATRIX, GAIN, BIAS };
struct row {
    const char *name;
    int per_layer;
    enum kind kind;
    enum role_along rows, cols;
};
static const struct row table[ROLE_COUNT] = {
    [ROLE_EMBED] = {"embed", 0, MATRIX, ALONG_VOCAB, ALONG_WIDTH},
    [ROLE_ATTN_NORM] = {"attn_norm", 1, GAIN, ALONG_WIDTH, ALONG_ONE},
    [ROLE_Q] = {"q", 1, MATRIX, ALONG_QUERY, ALONG_WIDTH},
    [ROLE_K] = {"k", 1, MATRIX, ALONG_KEY, ALONG_WIDTH},
    [ROLE_V] = {"v", 1, MATRIX, ALONG_KEY, ALONG_WIDTH},
    [ROLE_O] = {"o", 1, MATRIX, ALONG_WIDTH, ALONG_QUERY},
    [ROLE_FFN_NORM] = {"ffn_norm", 1, GAIN, ALONG_WIDTH, ALONG_ONE},
    [ROLE_GATE] = {"gate", 1, MATRIX, ALONG_FFN, ALONG_WIDTH},
    [ROLE_UP] = {"up", 1, MATRIX, ALONG_FFN, ALONG_WIDTH},
    [ROLE_DOWN] = {"down", 1, MATRIX, ALONG_WIDTH, ALONG_FFN},
    [ROLE_NORM] = {"norm", 0, GAIN, ALONG_WIDTH, ALONG_ONE},
    [ROLE_HEAD] = {"head", 0, MATRIX, ALONG_VOCAB, ALONG_WIDTH},
    [ROLE_Q_BIAS] = {"q_bias", 1, BIAS, ALONG_QUERY, ALONG_ONE},
    [ROLE_K_BIAS] = {"k_bias", 1, BIAS, ALONG_KEY, ALONG_ONE},
    [ROLE_V_BIAS] = {"v_bias", 1, BIAS, ALONG_KEY, ALONG_ONE},
    [ROLE_Q_NORM] = {"q_norm", 1, GAIN, ALONG_HEAD, ALONG_ONE},
    [ROLE_K_NORM] = {"k_norm", 1, GAIN, ALONG_HEAD, ALONG_ONE},
    [ROLE_CROSS_NORM] = {"cross_norm", 1, GAIN, ALONG_WIDTH, ALONG_ONE},
    [ROLE_CROSS_Q] = {"cross_q", 1, MATRIX, ALONG_QUERY, ALONG_WIDTH},
    [ROLE_CROSS_K] = {"cross_k", 1, MATRIX, ALONG_KEY, ALONG_WIDTH},
    [ROLE_CROSS_V] = {"cross_v", 1, MATRIX, ALONG_KEY, ALONG_WIDTH},
    [ROLE_CROSS_O] = {"cross_o", 1, MATRIX, ALONG_WIDTH, ALONG_QUERY},
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

int role_per_layer(enum role r)
{
    return table[r].per_layer;
}

size_t role_layers(const struct config *c, enum role r)
{
    if (table[r].kind == BIAS && !c->qkv_bias)
        return 0;
    if ((r == ROLE_Q_NORM || r == ROLE_K_NORM) && !c->qk_norm)
        return 0;
    if (r >= ROLE_CROSS_NORM && r <= ROLE_CROSS_O && !c->latents)
        return 0;
    return table[r].per_layer ? c->layers : 1;
}

static size_t size_of(const struct config *c, enum role_along s)
{
    const size_t sizes[] = {[ALONG_ONE] = 1,
                            [ALONG_WIDTH] = c->width,
                            [ALONG_FFN] = c->ffn,
                            [ALONG_VOCAB] = c->vocab,
                            [ALONG_QUERY] = c->heads * c->head_dim,
                            [ALONG_KEY] = c->kv_heads * c->head_dim,
                            [ALONG_HEAD] = c->head_dim};
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
