/* config-save.c - writes config.json in the keys of each family, complete enough that config_load
 * and the publishers' own code read the same network from it. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/base/out.h"
#include "lib/checkpoint/config.h"

static void set_int(json_t *o, const char *key, size_t v)
{
    json_object_set_new(o, key, json_integer((json_int_t)v));
}

static void set_id(json_t *o, const char *key, int64_t id)
{
    if (id >= 0)
        json_object_set_new(o, key, json_integer((json_int_t)id));
}

static void set_flag(json_t *o, const char *key, int v)
{
    json_object_set_new(o, key, json_boolean(v));
}

static void set_text(json_t *o, const char *key, const char *v)
{
    json_object_set_new(o, key, json_string(v));
}

static void set_real(json_t *o, const char *key, double v)
{
    json_object_set_new(o, key, json_real(v));
}

static void set_ids(json_t *o, const struct config *c)
{
    json_t *eos = json_array();
    for (size_t i = 0; i < c->n_eos; i++)
        json_array_append_new(eos, json_integer((json_int_t)c->eos[i]));
    set_id(o, "bos_token_id", c->bos);
    if (c->n_eos == 1)
        json_object_set(o, "eos_token_id", json_array_get(eos, 0));
    else
        json_object_set(o, "eos_token_id", eos);
    json_decref(eos);
    set_id(o, "pad_token_id", c->pad);
    set_id(o, "mask_token_id", c->mask);
}

static void set_family(json_t *o, const char *type, const char *architecture)
{
    set_text(o, "model_type", type);
    json_object_set_new(o, "architectures", json_pack("[s]", architecture));
}

static json_t *llama_json(const struct config *c)
{
    json_t *o = json_object();
    set_family(o, "llama", "LlamaForCausalLM");
    set_int(o, "hidden_size", c->width);
    set_int(o, "num_hidden_layers", c->layers);
    set_int(o, "num_attention_heads", c->heads);
    set_int(o, "num_key_value_heads", c->kv_heads);
    set_int(o, "head_dim", c->head_dim);
    set_int(o, "intermediate_size", c->ffn);
    set_int(o, "vocab_size", c->vocab);
    set_int(o, "max_position_embeddings", c->context);
    set_flag(o, "tie_word_embeddings", c->tied);
    set_real(o, "rms_norm_eps", c->norm_eps);
    set_real(o, "rope_theta", c->rope_theta);
    if (c->rope_llama3)
        json_object_set_new(o, "rope_scaling",
                            json_pack("{s:s, s:f, s:f, s:f, s:I}", "rope_type", "llama3", "factor",
                                      c->rope_factor, "low_freq_factor", c->rope_low_freq,
                                      "high_freq_factor", c->rope_high_freq,
                                      "original_max_position_embeddings",
                                      (json_int_t)c->rope_original_context));
    set_text(o, "hidden_act", "silu");
    set_flag(o, "attention_bias", 0);
    set_flag(o, "mlp_bias", 0);
    set_ids(o, c);
    return o;
}

static json_t *llada_json(const struct config *c)
{
    json_t *o = json_object();
    set_family(o, "llada", "LLaDAModelLM");
    set_int(o, "d_model", c->width);
    set_int(o, "n_layers", c->layers);
    set_int(o, "n_heads", c->heads);
    set_int(o, "n_kv_heads", c->kv_heads);
    set_int(o, "mlp_hidden_size", c->ffn);
    set_int(o, "vocab_size", c->vocab);
    set_int(o, "embedding_size", c->vocab);
    set_int(o, "max_sequence_length", c->context);
    set_flag(o, "weight_tying", c->tied);
    set_text(o, "activation_type", "silu");
    set_text(o, "block_type", "llama");
    set_int(o, "block_group_size", 1);
    set_text(o, "layer_norm_type", "rms");
    set_flag(o, "layer_norm_with_affine", 1);
    set_real(o, "rms_norm_eps", c->norm_eps);
    set_flag(o, "include_bias", 0);
    set_flag(o, "include_qkv_bias", 0);
    set_flag(o, "bias_for_layer_norm", 0);
    set_flag(o, "attention_layer_norm", 0);
    set_flag(o, "alibi", 0);
    set_flag(o, "rope", 1);
    set_flag(o, "rope_full_precision", 1);
    set_real(o, "rope_theta", c->rope_theta);
    set_flag(o, "input_emb_norm", 0);
    set_flag(o, "scale_logits", 0);
    set_ids(o, c);
    return o;
}

/* What the keys of a family cannot say must not get lost in silence. */
static int can_say(const struct config *c, struct err *e)
{
    if (c->arch == ARCH_LLADA && c->width != c->heads * c->head_dim)
        return err_set(e, EXIT_INTERNAL,
                       "llada config: head_dim %zu x heads %zu is not the width %zu", c->head_dim,
                       c->heads, c->width);
    if (c->arch == ARCH_LLADA && (c->rope_llama3 || c->mask < 0))
        return err_set(e, EXIT_INTERNAL, "llada config: rescaled RoPE, or no mask token");
    return c->n_eos ? 0 : err_set(e, EXIT_INTERNAL, "config: no eos token");
}

int config_save(const struct config *c, const char *folder, struct err *e)
{
    struct out out;
    if (can_say(c, e) || file_make_folder(folder, e))
        return -1;
    char *path = mem_format("%s/config.json", folder);
    int bad = out_open(&out, path, e);
    free(path);
    if (bad)
        return -1;
    json_t *o = c->arch == ARCH_LLADA ? llada_json(c) : llama_json(c);
    bad = json_dumpf(o, out.f, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(o);
    if (bad || fputc('\n', out.f) == EOF) {
        out_abandon(&out);
        return err_set(e, EXIT_IO, "%s/config.json: cannot write", folder);
    }
    return out_commit(&out, e);
}
