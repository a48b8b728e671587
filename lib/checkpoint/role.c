/* role.c - one row a role: its name for people, whether each layer has one, what kind of tensor it
 * is, and which two sizes of a config are its shape. Every question about a role is answered from
 * that row, so that a new tensor of the block is a new row here and a name in the families.
 */
#include "lib/checkpoint/role.h"

enum kind { MATRIX, GAIN, BIAS };
enum size { ONE, WIDTH, FFN, VOCAB, QUERY, KEY, HEAD };
struct row {
    const char *name;
    int per_layer;
    enum kind kind;
    enum size rows, cols;
};
static const struct row table[ROLE_COUNT] = {
    [ROLE_EMBED] = {"embed", 0, MATRIX, VOCAB, WIDTH},
    [ROLE_ATTN_NORM] = {"attn_norm", 1, GAIN, WIDTH, ONE},
    [ROLE_Q] = {"q", 1, MATRIX, QUERY, WIDTH},
    [ROLE_K] = {"k", 1, MATRIX, KEY, WIDTH},
    [ROLE_V] = {"v", 1, MATRIX, KEY, WIDTH},
    [ROLE_O] = {"o", 1, MATRIX, WIDTH, QUERY},
    [ROLE_FFN_NORM] = {"ffn_norm", 1, GAIN, WIDTH, ONE},
    [ROLE_GATE] = {"gate", 1, MATRIX, FFN, WIDTH},
    [ROLE_UP] = {"up", 1, MATRIX, FFN, WIDTH},
    [ROLE_DOWN] = {"down", 1, MATRIX, WIDTH, FFN},
    [ROLE_NORM] = {"norm", 0, GAIN, WIDTH, ONE},
    [ROLE_HEAD] = {"head", 0, MATRIX, VOCAB, WIDTH},
    [ROLE_Q_BIAS] = {"q_bias", 1, BIAS, QUERY, ONE},
    [ROLE_K_BIAS] = {"k_bias", 1, BIAS, KEY, ONE},
    [ROLE_V_BIAS] = {"v_bias", 1, BIAS, KEY, ONE},
    [ROLE_Q_NORM] = {"q_norm", 1, GAIN, HEAD, ONE},
    [ROLE_K_NORM] = {"k_norm", 1, GAIN, HEAD, ONE},
    [ROLE_CROSS_NORM] = {"cross_norm", 1, GAIN, WIDTH, ONE},
    [ROLE_CROSS_Q] = {"cross_q", 1, MATRIX, QUERY, WIDTH},
    [ROLE_CROSS_K] = {"cross_k", 1, MATRIX, KEY, WIDTH},
    [ROLE_CROSS_V] = {"cross_v", 1, MATRIX, KEY, WIDTH},
    [ROLE_CROSS_O] = {"cross_o", 1, MATRIX, WIDTH, QUERY},
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

static size_t size_of(const struct config *c, enum size s)
{
    const size_t sizes[] = {[ONE] = 1,
                            [WIDTH] = c->width,
                            [FFN] = c->ffn,
                            [VOCAB] = c->vocab,
                            [QUERY] = c->heads * c->head_dim,
                            [KEY] = c->kv_heads * c->head_dim,
                            [HEAD] = c->head_dim};
    return sizes[s];
}

void role_shape(const struct config *c, enum role r, size_t *rows, size_t *cols)
{
    *rows = size_of(c, table[r].rows);
    *cols = size_of(c, table[r].cols);
}
