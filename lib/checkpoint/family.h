/* family.h - model families: for each architecture the keys of its config.json, the names of its
 * tensors, and the switches of its block.
 *
 * A family is a struct family in a file of families/, and an entry in FAMILIES. The struct holds as
 * data: the name of the architecture; the switches of its block and its defaults (`start`); the
 * member of struct config for each key of config.json; the keys that must have a certain value; the
 * keys that change no result; the names of the tensors; the shapes for -m synth:NAME. A key of
 * config.json that no row names is refused by name, unless it is null or the caller ignores it:
 * with an unknown key the model could run and compute something else. */
#pragma once

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/checkpoint/role.h"

/* ---- tensors ---- */

enum { FAMILY_NAME_MAX = 96, FAMILY_NAMINGS = 2 };

/* The names of all tensors. The tensor of role r in layer N is "LAYERS.N.ROLE", with LAYERS =
 * `layers` and ROLE = role[r]. The name is role[r] alone for roles outside the layers, and where
 * `layers` is NULL, for a model of one layer. A # in a name stands for the number of an expert. If
 * q, k and v have the same name, one tensor holds the rows of all three; then the family has a
 * second naming with three names, for packed files. */
struct family_naming {
    const char *layers;
    const char *role[ROLE_COUNT];
};
extern const struct family_naming family_hugging_face; /* "model.layers.N.self_attn.q_proj..." */
/* family_hugging_face without "model.": names in a model that was saved without its head. */
extern const struct family_naming family_hugging_face_bare;

int family_is_fused(const struct family_naming *n); /* 1: q, k and v are one tensor */
/* Writes the name of tensor `number` of a role (role_tensors), for example
 * "model.layers.3.mlp.up_proj.weight". */
void family_tensor_name(char name[FAMILY_NAME_MAX], const struct family_naming *n,
                        const struct config *config, enum role role, size_t number);

/* ---- config.json ---- */

enum family_use {
    KEY_READ,     /* may be absent; written only if it is a number that follows from no other key */
    KEY_WRITTEN,  /* may be absent; always written */
    KEY_REQUIRED, /* must be there, because it has no default; always written */
    KEY_SAME      /* may be absent; else must equal the member that an earlier row has set; always
                   * written */
};
/* The key of a size in config.json, and the size_t member of struct config that it sets. */
struct family_number {
    const char *key;
    size_t offset;
    int64_t lo, hi;
    enum family_use use;
};
/* A key that must have this value (JSON): the engine supports no other. */
struct family_fixed {
    const char *key, *value;
    enum family_use use;
};
#define FAMILY_WIDTH_MAX (INT64_C(1) << 20)
#define FAMILY_VOCAB_MAX (INT64_C(1) << 20)
#define FAMILY_CONTEXT_MAX (INT64_C(1) << 24)
#define FAMILY_RANK 32 /* default rank of the low-rank parts of RWKV */
#define FAMILY_AT(member) offsetof(struct config, member)
/* hidden_size, num_hidden_layers, ...: the keys of most families. */
#define FAMILY_HUGGING_FACE_NUMBERS                                                                \
    {"hidden_size", FAMILY_AT(width), 1, FAMILY_WIDTH_MAX, KEY_REQUIRED},                          \
    {"num_hidden_layers", FAMILY_AT(layers), 1, CONFIG_MAX_LAYERS, KEY_REQUIRED},                  \
    {"num_attention_heads", FAMILY_AT(heads), 1, 4096, KEY_REQUIRED},                              \
    {"num_key_value_heads", FAMILY_AT(kv_heads), 1, 4096, KEY_WRITTEN},                            \
    {"head_dim", FAMILY_AT(head_dim), 2, 4096, KEY_WRITTEN},                                       \
    {"intermediate_size", FAMILY_AT(ffn), 1, FAMILY_WIDTH_MAX, KEY_REQUIRED},                      \
    {"vocab_size", FAMILY_AT(vocab), 1, FAMILY_VOCAB_MAX, KEY_REQUIRED},                           \
    {"max_position_embeddings", FAMILY_AT(context), 1, FAMILY_CONTEXT_MAX, KEY_WRITTEN}
extern const struct family_number family_hugging_face_numbers[];

/* A JSON object that is read, and the place of errors. path: the file, for messages. */
struct family_source {
    const json_t *json;
    const char *path;
    struct err *e;
};
/* -1 (EXIT_BAD_DATA): "PATH: KEY: expected EXPECTED, got VALUE". */
int family_refuse(const struct family_source *source, const char *key, const char *expected);
/* 1: the list, which ends with NULL and may be NULL, has the key. */
int family_lists(const char *const *list, const char *key);
/* Checks rows that end with a row without a key. -1: a key has another value than its row, or a
 * required key is missing. */
int family_check_fixed(const struct family_source *source, const struct family_fixed *k);
/* Reads rope_scaling or rope_parameters (`key`), which may be absent. config->context must be set;
 * this function cuts it before the positions whose queries would grow (config.rope_beta). -1: the
 * file is refused. */
int family_read_rope(struct config *config, const struct family_source *source, const char *key);
/* -1: the file does not state a rotation of type yarn. */
int family_needs_yarn(struct config *config, const struct family_source *source);
/* Members of `start`: the default rotation of Ministral 3 and of models with its block. */
#define FAMILY_MINISTRAL3_ROPE                                                                     \
    .rope_theta = 1e6, .context = 262144, .rope_yarn = 1, .rope_factor = 16, .rope_low_freq = 1,   \
    .rope_high_freq = 32, .rope_original_context = 16384, .rope_beta = 0.1

/* A shape behind -m synth:NAME. */
struct family_shape {
    const char *name;
    size_t width, layers, heads, kv_heads, head_dim, ffn, vocab, context;
    int tied;
    double norm_eps, rope_theta;
    double rope_factor; /* 0: plain RoPE; else the factor of rope_type llama3 over 8192 positions */
    int64_t bos, eos, mask, eot; /* -1: none */
};
/* Values for the members of struct config with these names. */
struct family_mixture {
    size_t experts, used, shared, dense, dense_ffn, groups, groups_used;
    size_t rope_dims; /* 0: all values of a head are rotated */
};

/* Members that all a2d families share (github.com/ZHZisZZ/dllm: dllm/pipelines/a2d). An a2d model
 * is a causal model turned into a denoiser, with the layout of the causal model. Two kinds have the
 * same class and config.json, so only the name of the model tells them apart: mdlm (full mask) and
 * bd3lm (blocks, counted from the end of the prompt). The mask is a token of the tokenizer.
 * Samplers: core/samplers/mdlm.py and bd3lm.py in dllm. */
#define FAMILY_A2D                                                                                 \
    .mask_token = "<|mask|>", .named = family_a2d_named,                                           \
    .defaults = "block_length=32 pace=rounded"
#define FAMILY_DENOISES                                                                            \
    .paradigm = PARADIGM_MASKED_DIFFUSION, .attends = MASK_FULL, .attends_from_end = 1
void family_a2d_named(struct config *config);

struct family {
    const char *name;         /* `arch` in records */
    const char *architecture; /* architectures[0] of config.json, read and written */
    const char *const *aliases; /* other architectures that are read; NULL last, may be NULL */
    const char *model_type;   /* model_type of config.json; selects the family of files without
                               * architectures */
    const char *key;          /* a key that only files of this family have. It selects the family if
                               * an alias belongs to several families. NULL: none */
    const char *const *other_types; /* further values of model_type that are read together with the
                               * architecture; NULL last, may be NULL */
    const struct family_naming *naming[FAMILY_NAMINGS]; /* the one that is written; another that is
                               * also read, or NULL */
    /* Defaults for an empty config.json: paradigm, switches, template. Members without a default
     * are 0; tied is -1 if it has no default. */
    struct config start;
    const struct family_number *numbers; /* ends with a row without a key */
    const struct family_fixed *fixed;    /* ends with a row without a key */
    const char *tied_key;       /* key of the flag for a tied head */
    const char *mask_token;     /* text of the mask token, for files without mask_token_id; may be
                               * NULL */
    int64_t mask_id, eos_id;    /* ids in the authors' code, for files that state none; 0: none. If
                               * eos_id is beyond the vocabulary, the padding is the eos */
    int rope_scaling;           /* 1: rescaled rotations (llama3, yarn, linear) are read; 0: they
                               * are refused */
    const char *const *ignored; /* further keys that change no result; NULL last, may be NULL */
    const char *const *finished; /* keys that `finish` reads; NULL last, may be NULL */
    /* Runs after the tables, for rules that the tables cannot express. NULL: none. -1: the file is
     * refused. */
    int (*finish)(struct config *config, const struct family_source *source);
    /* Writes the keys that `finish` reads, for this shape. NULL: none. */
    void (*say)(json_t *json, const struct config *config);
    const struct family_shape *shapes; /* ends with a row without a name */
    const enum mixer *mixers; /* the mixer of each shape; NULL: attention in all */
    const struct family_mixture *mixtures; /* the experts of each shape; NULL: none in all */
    /* Sets the members that only the name of the model (config->name) decides. NULL: there are
     * none. */
    void (*named)(struct config *config);
    /* The family of denoisers with this layout, which training makes from models of this family;
     * NULL: none. */
    const struct family *denoiser;
    /* The settings with which the authors run the model, where they differ from this project's
     * defaults: "row=value row=value". NULL: no difference. */
    const char *defaults;
};

#define FAMILIES(FAMILY) \
    FAMILY(llama) FAMILY(llada) FAMILY(illada) FAMILY(qwen2) FAMILY(qwen3) FAMILY(ltm)            \
    FAMILY(mistral) FAMILY(ministral3) FAMILY(smollm3)                                 \
    FAMILY(a2d_llama) FAMILY(a2d_qwen2) FAMILY(a2d_qwen3) FAMILY(sdar)                 \
    FAMILY(dream) FAMILY(fast_dllm) FAMILY(llada_moe) FAMILY(nemotron)                 \
    FAMILY(llada2) FAMILY(ling) FAMILY(stable_diffcoder) FAMILY(dflash) FAMILY(eagle3)
#define FAMILY_ROW(name) extern const struct family name##_family;
FAMILIES(FAMILY_ROW)
#undef FAMILY_ROW

/* The i-th family; NULL beyond the last. */
const struct family *family_at(size_t i);
const struct family *family_named(const char *name); /* NULL: none */
/* *config = the family's defaults: ids -1, no shape yet. */
void family_start(struct config *config, const struct family *family);

/* *config = the config of a model called `name` whose training starts from the unquantized weights
 * of `from`. denoises 1: the new model is a denoiser with the same layout, without a mask token
 * yet. -1 (EXIT_BAD_USAGE): no denoiser can be made from `from`; or the mask depends on the name
 * alone, and `name` gives another mask than `from`. */
int family_continue(struct config *config, const struct config *from, const char *name,
                    int denoises, struct err *e);

/* Keys of config.json that do not change the network. */
struct family_extras {
    const char *ignore; /* the caller's: "KEY,KEY", unknown keys to ignore; or NULL */
    char *harmless;     /* "KEY, KEY": keys in the file that change no result; NULL: none */
    char *ignored;      /* "KEY,KEY": keys of `ignore` in the file; NULL: none */
};
void family_extras_free(struct family_extras *extras);
/* Reads folder/config.json and, if it exists, folder/generation_config.json (bos, pad and eos).
 * extras may be NULL. An autoregressive model may have no eos. -1: EXIT_BAD_DATA with key, value
 * and expected values; EXIT_NO_INPUT; EXIT_BAD_USAGE: extras->ignore names a key that is read. */
int family_load(struct config *config, const char *folder, struct family_extras *extras,
                struct err *e);
/* family_load() from the contents of config.json; `path` is for messages and the name of the
 * model. */
int family_read(struct config *c, const json_t *config, const char *path,
                struct family_extras *extras, struct err *e);
/* Writes folder/config.json with the family's keys. -1: EXIT_CANNOT_CREATE, EXIT_BUSY, EXIT_IO;
 * EXIT_INTERNAL: these keys cannot express config. */
int family_save(const struct config *config, const char *folder, struct err *e);
/* Changes the sizes in the config.json of `from` to the sizes of `to`. Other keys stay. */
void family_set_shape(json_t *json, const struct config *from, const struct config *to);
