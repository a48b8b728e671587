/* roles.c - the twelve tensors of the network, their shapes, and their names in the two schemes.
 * Source: models.md 1.2 and 4.2. */
#include "lib/checkpoint/roles.h"

#include <stdio.h>

const char *const role_names[ROLE_COUNT] = {"embed",    "attn_norm", "q",  "k",    "v",    "o",
                                            "ffn_norm", "gate",      "up", "down", "norm", "head"};

struct role_text {
    const char *global, *layer; /* one of them: outside the layers, or what follows their number */
};
static const struct role_text llama_text[ROLE_COUNT] = {
    [ROLE_EMBED] = {"model.embed_tokens.weight", NULL},
    [ROLE_ATTN_NORM] = {NULL, "input_layernorm.weight"},
    [ROLE_Q] = {NULL, "self_attn.q_proj.weight"},
    [ROLE_K] = {NULL, "self_attn.k_proj.weight"},
    [ROLE_V] = {NULL, "self_attn.v_proj.weight"},
    [ROLE_O] = {NULL, "self_attn.o_proj.weight"},
    [ROLE_FFN_NORM] = {NULL, "post_attention_layernorm.weight"},
    [ROLE_GATE] = {NULL, "mlp.gate_proj.weight"},
    [ROLE_UP] = {NULL, "mlp.up_proj.weight"},
    [ROLE_DOWN] = {NULL, "mlp.down_proj.weight"},
    [ROLE_NORM] = {"model.norm.weight", NULL},
    [ROLE_HEAD] = {"lm_head.weight", NULL},
};
static const struct role_text llada_text[ROLE_COUNT] = {
    [ROLE_EMBED] = {"model.transformer.wte.weight", NULL},
    [ROLE_ATTN_NORM] = {NULL, "attn_norm.weight"},
    [ROLE_Q] = {NULL, "q_proj.weight"},
    [ROLE_K] = {NULL, "k_proj.weight"},
    [ROLE_V] = {NULL, "v_proj.weight"},
    [ROLE_O] = {NULL, "attn_out.weight"},
    [ROLE_FFN_NORM] = {NULL, "ff_norm.weight"},
    [ROLE_GATE] = {NULL, "ff_proj.weight"},
    [ROLE_UP] = {NULL, "up_proj.weight"},
    [ROLE_DOWN] = {NULL, "ff_out.weight"},
    [ROLE_NORM] = {"model.transformer.ln_f.weight", NULL},
    [ROLE_HEAD] = {"model.transformer.ff_out.weight", NULL},
};

void role_tensor_name(char name[ROLE_NAME_MAX], enum scheme scheme, enum role r, size_t layer)
{
    const struct role_text *t = scheme == SCHEME_LLADA ? &llada_text[r] : &llama_text[r];
    const char *blocks = scheme == SCHEME_LLADA ? "model.transformer.blocks" : "model.layers";
    if (t->global)
        snprintf(name, ROLE_NAME_MAX, "%s", t->global);
    else
        snprintf(name, ROLE_NAME_MAX, "%s.%zu.%s", blocks, layer, t->layer);
}

int role_is_norm(enum role r)
{
    return r == ROLE_ATTN_NORM || r == ROLE_FFN_NORM || r == ROLE_NORM;
}

int role_per_layer(enum role r)
{
    return r != ROLE_EMBED && r != ROLE_NORM && r != ROLE_HEAD;
}

size_t role_layers(const struct config *c, enum role r)
{
    return role_per_layer(r) ? c->layers : 1;
}

void role_shape(const struct config *c, enum role r, size_t *rows, size_t *cols)
{
    const size_t query = c->heads * c->head_dim, key = c->kv_heads * c->head_dim;
    *cols = role_is_norm(r)   ? 1
            : r == ROLE_O     ? query
            : r == ROLE_DOWN  ? c->ffn
                              : c->width;
    *rows = r == ROLE_EMBED || r == ROLE_HEAD  ? c->vocab
            : r == ROLE_Q                      ? query
            : r == ROLE_K || r == ROLE_V       ? key
            : r == ROLE_GATE || r == ROLE_UP   ? c->ffn
                                               : c->width;
}
