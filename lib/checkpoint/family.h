/* family.h - checkpoint layouts: which architectures there are, how config.json and the tensors of
 * each are read, and what each does otherwise in the block.
 *
 * A family is one file in families/ that fills a struct family, and one entry in FAMILIES. Its row
 * says, in data: the architecture that it answers to, the switches of its block and its defaults
 * (`start`), which key of config.json is which member of struct config, which keys must have a
 * certain value and which change no result, what its tensors are called, and the shapes that
 * -m synth:NAME knows of it. A key that no row knows is refused by name, unless it is null or the
 * caller answers for it: a checkpoint that asks for something unknown would otherwise run, and be
 * wrong.
 */
#ifndef CHECKPOINT_FAMILY_H
#define CHECKPOINT_FAMILY_H

#include <jansson.h>

#include "lib/base/err.h"
#include "lib/checkpoint/role.h"

/* ---- tensors ---- */

enum { FAMILY_NAME_MAX = 96, FAMILY_NAMINGS = 2 };

/* Names of all tensors in one scheme: of role r layers.N.role[r], or role[r] outside the layers. */
struct family_naming {
    const char *layers;
    const char *role[ROLE_COUNT];
};
extern const struct family_naming family_hugging_face; /* "model.layers.N.self_attn.q_proj..." */
/* The same without "model.": a model that was saved without the class of its head. */
extern const struct family_naming family_hugging_face_bare;

/* The tensor's name, for example "model.layers.3.mlp.up_proj.weight". */
void family_tensor_name(char name[FAMILY_NAME_MAX], const struct family_naming *n, enum role r,
                        size_t layer);

/* ---- config.json ---- */

enum family_use {
    KEY_READ,     /* may be absent, and is not written; a number is where nothing else says it */
    KEY_WRITTEN,  /* may be absent, and is written all the same */
    KEY_REQUIRED, /* when absent, the value would be another one */
    KEY_SAME      /* a number that, when there, must be what a row above gave its member */
};
/* A size in the file, and the size_t member of struct config that it is. */
struct family_number {
    const char *key;
    size_t offset;
    int64_t lo, hi;
    enum family_use use;
};
/* A key that must have this value (JSON), the only one that this engine computes with. */
struct family_fixed {
    const char *key, *value;
    enum family_use use;
};
#define FAMILY_WIDTH_MAX (INT64_C(1) << 20)
#define FAMILY_VOCAB_MAX (INT64_C(1) << 20)
#define FAMILY_CONTEXT_MAX (INT64_C(1) << 24)
#define FAMILY_RANK 32 /* of the low-rank parts of RWKV where nobody says another */
#define FAMILY_AT(member) offsetof(struct config, member)
/* hidden_size, num_hidden_layers, ...: what most families call them. */
extern const struct family_number family_hugging_face_numbers[];

/* Where a value comes from, for messages. */
struct family_source {
    const json_t *json;
    const char *path;
    struct err *e;
};
/* -1 (EXIT_BAD_DATA): "PATH: KEY: expected EXPECTED, got VALUE". */
int family_refuse(const struct family_source *s, const char *key, const char *expected);

/* A shape behind -m synth:NAME. */
struct family_shape {
    const char *name;
    size_t width, layers, heads, kv_heads, head_dim, ffn, vocab, context;
    int tied;
    double norm_eps, rope_theta;
    double rope_factor; /* 0: plain RoPE; else that of rope_type llama3 over 8192 positions */
    int64_t bos, eos, mask, eot; /* -1: none */
};

struct family {
    const char *name;         /* what records call `arch` */
    const char *architecture; /* architectures[0] that it answers to, and writes */
    const char *const *aliases; /* others that it answers to; NULL last, may be NULL */
    const char *model_type;   /* and, where a file names no architecture, its model_type */
    const struct family_naming *naming[FAMILY_NAMINGS]; /* its own, and one more that it reads */
    /* What an empty config.json would mean: paradigm, switches, template, defaults. Members that
     * must be said are 0; tied is -1 where that must be. */
    struct config start;
    const struct family_number *numbers; /* both end with a row without a key */
    const struct family_fixed *fixed;
    const char *tied_key;       /* of the flag whether the head is the embedding */
    int rope_scaling;           /* 1: rope_scaling and rope_parameters are read; 0: refused */
    const char *const *ignored; /* keys beside those of all families that change no result */
    const char *const *finished; /* keys that `finish` reads; both end with NULL and may be NULL */
    /* What the tables cannot say, once they are read. NULL: nothing. -1: refused. */
    int (*finish)(struct config *c, const struct family_source *s);
    /* Sets those of the keys that `finish` reads which say this shape. NULL: none. */
    void (*say)(json_t *json, const struct config *c);
    const struct family_shape *shapes; /* ends with a row without a name */
    const enum mixer *mixers; /* of each of them; NULL: attention */
};

#define FAMILIES(FAMILY) FAMILY(llama) FAMILY(llada) FAMILY(qwen2) FAMILY(qwen3) FAMILY(ltm)
#define FAMILY_ROW(name) extern const struct family name##_family;
FAMILIES(FAMILY_ROW)
#undef FAMILY_ROW

/* The i-th family; NULL beyond the last. */
const struct family *family_at(size_t i);
const struct family *family_named(const char *name); /* NULL: none */
/* *c = what the family starts from: ids -1, no shape yet. */
void family_start(struct config *c, const struct family *f);

/* What config.json has beside the network. */
struct family_extras {
    const char *ignore; /* the caller's: "KEY,KEY", unknown keys that are passed over; or NULL */
    char *harmless;     /* "KEY, KEY": those there that change no result; NULL: none */
    char *ignored;      /* "KEY,KEY": those of `ignore` that are there; NULL: none */
};
void family_extras_free(struct family_extras *x);
/* folder/config.json and, when there, folder/generation_config.json (eos list). extras may be
 * NULL. -1: 65 with key, value and range, or 66; 64: `ignore` names a key that is read. An
 * autoregressive model may have no eos. */
int family_load(struct config *c, const char *folder, struct family_extras *extras, struct err *e);
/* Writes the family's own config.json. -1: 73/74; EXIT_INTERNAL: its keys cannot say this shape. */
int family_save(const struct config *c, const char *folder, struct err *e);
/* Changes a config.json that says the sizes of `from` into one that says those of `to`; all other
 * keys stay as they are. */
void family_set_shape(json_t *json, const struct config *from, const struct config *to);

#endif
