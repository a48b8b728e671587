/* checkpoint.h - opens a model on disk: its config, its checked tensors by role, its tokenizer.
 *
 * Roles (role.h) hide the tensor names of each family. checkpoint_open checks that every expected
 * tensor exists with its exact shape, and that no other tensor could change a result: it ignores
 * only buffers that follow from the config, and biases that are all zeros.
 *
 * The argument `layer` of these functions is the number of a tensor in its role (role_tensors):
 * this is the layer, except for matrices of experts. It is ignored for roles outside the layers. */
#pragma once

#include <jansson.h>

#include "kernels/draw.h"
#include "kernels/ops.h"
#include "lib/base/cli/log.h"
#include "lib/checkpoint/family.h"
#include "lib/checkpoint/quantization.h"
#include "lib/checkpoint/safetensors.h"
#include "lib/text/chat.h"
#include "lib/text/tokenizer.h"

struct checkpoint {
    struct config config;
    char *folder;            /* NULL for synth: */
    json_t *tokenizer;       /* tokenizer.json of a GGUF file; NULL: it is in the folder */
    struct tokenizer_file file; /* tokenizer.json of the folder, if it was read and not yet used by
                              * checkpoint_tokenizer() */
    int pairs;               /* 1: rows of q and k are stored in pairs (checkpoint-gguf.c) */
    struct tensors *tensors; /* NULL for synth: */
    int reads_all;           /* as in struct checkpoint_opening */
    struct read_ahead *ahead; /* NULL: no thread reads the files ahead */
    struct family_extras extras; /* keys of config.json that were ignored */
    const struct tensor **role; /* [ROLE_COUNT, role_tensors_most()], internal; NULL for synth: */
    struct tensor *piece;    /* [3 L] q, k and v where one tensor holds them, else NULL */
    struct codes *codes;     /* [ROLE_COUNT, role_tensors_most()] of a packed checkpoint, else NULL;
                              * scale NULL: this tensor has no codes */
    int32_t *ids;            /* [config.answers] the id of each row of the head, ascending; NULL:
                              * row v is id v */
    const struct tensor *passed[2]; /* the tensors d2t and t2d that state ids (checkpoint-ids.c);
                              * pack-model copies them unchanged. NULL: the file has none */
    float *normal;           /* synth_table() for synth:, else NULL */
    struct draw *draw;       /* [ROLE_COUNT, role_tensors_most()] seeds of the matrices of synth:,
                              * else NULL */
};

/* name: a folder, org/name[@rev] in the cache, FILE.gguf, or synth:SHAPE. synth_seed: for synth:
 * only. -1: nothing is left open. */
int checkpoint_open(struct checkpoint *model, const char *name, uint64_t synth_seed, struct err *e);
struct checkpoint_opening {
    uint64_t synth_seed;
    const char *ignore; /* "KEY,KEY": unknown keys of config.json that are ignored (family.h) */
    int reads_all; /* 1: the caller will read all matrices. A thread reads the files ahead
                    * (read_ahead.h) as soon as they are known, so ask for AMX before the call
                    * (amx.h). */
};
/* As checkpoint_open(). */
int checkpoint_open_with(struct checkpoint *model, const char *name,
                         const struct checkpoint_opening *how, struct err *e);
/* *model = a checkpoint with random weights of this shape, as synth: makes them. */
void checkpoint_draw(struct checkpoint *model, const struct config *shape, uint64_t seed);
/* Logs what is odd in the files but does not stop a run: each as a warning or a note. */
void checkpoint_say(const struct checkpoint *model, const struct log *log);
/* The stored tensor of a role. NULL for synth. */
const struct tensor *checkpoint_tensor(const struct checkpoint *model, enum role role,
                                       size_t layer);
/* Widens rows x cols values of any stored dtype (F32, F16, BF16, codes) to float. For synth
 * checkpoints the values are drawn: normal, std 0.02 (gains of norms: ones), a function of (seed,
 * role, layer, index). */
void checkpoint_floats(const struct checkpoint *model, enum role role, size_t layer, float *out);
/* A matrix of an open checkpoint as a source for mat_make. Borrows *of and its checkpoint. The
 * source gives bf16 values directly from the mapped file where they are aligned, the codes of a
 * packed matrix, or any rows as floats. Threads may use the source at the same time. */
struct weight {
    const struct checkpoint *checkpoint;
    enum role role;
    size_t layer;
};
struct mat_source checkpoint_source(const struct weight *of);
/* The caller is about to read this matrix. NULL: the caller reads no more matrices. */
void checkpoint_reached(const struct checkpoint *model, const struct weight *of);
/* Drops the file range of a matrix from our address space. The range stays in the page cache. */
void checkpoint_drop(const struct weight *of);
/* Reads every weight. -1: EXIT_BAD_DATA: a NaN, an infinity, or a matrix or gain of zeros (*e names
 * the tensor); EXIT_IO: a file changed since it was opened. */
int checkpoint_check_values(const struct checkpoint *model, struct err *e);
/* The check of checkpoint_check_values for one tensor of a checkpoint with files. */
int checkpoint_check_tensor(const struct checkpoint *model, enum role role, size_t layer,
                            struct err *e);
/* The dtype of the matrices, before packing: "F32", "F16" or "BF16". "F32" if matrices differ or
 * have a block format of GGUF, "BF16" for synth. */
const char *checkpoint_dtype(const struct checkpoint *model);
/* *out = the tokenizer of tokenizer.json, the caller's; NULL if there is no tokenizer.json, as for
 * synth:. -1 (EXIT_BAD_DATA): the tokenizer is broken, or has ids outside the embedding. */
int checkpoint_tokenizer(struct checkpoint *model, struct tokenizer **out, struct err *e);
/* The contents of the model's tokenizer.json; the caller's. NULL: EXIT_NO_INPUT (there is none),
 * EXIT_BAD_DATA. */
json_t *checkpoint_tokenizer_json(const struct checkpoint *model, struct err *e);
/* Path of the i-th file of the model, with a folder, the caller's; NULL: there are no more. */
char *checkpoint_file(const struct checkpoint *model, size_t i);
/* *out = the chat template of the checkpoint, for chat_choose; no template for synth:. -1: a file
 * cannot be read, or is not JSON. Call checkpoint_chat_free in any case. */
struct checkpoint_chat {
    struct chat_source source; /* borrows from the members below */
    char *path;
    struct buf text;           /* chat_template.jinja */
    json_t *config, *processor; /* tokenizer_config.json; chat_template.json */
    json_t *tokens;            /* special tokens of tokenizer_config.json by their keys */
};
int checkpoint_chat(const struct checkpoint *model, struct checkpoint_chat *out, struct err *e);
void checkpoint_chat_free(struct checkpoint_chat *chat);
/* An object for meta records: names and SHA-256 of the files, shapes, parameters. The caller's
 * reference. NULL: a file cannot be read (EXIT_NO_INPUT, EXIT_IO). */
json_t *checkpoint_describe(const struct checkpoint *model, struct err *e);
void checkpoint_close(struct checkpoint *model);

/* checkpoint-gguf.c, for the other files of this module. */
extern const struct family_naming checkpoint_gguf_names; /* "blk.N.attn_q.weight"... */
/* Fills config, extras, tensors, tokenizer, folder and pairs of *model from a file named .gguf.
 * -1: EXIT_NO_INPUT, EXIT_BAD_DATA. */
int checkpoint_open_gguf(struct checkpoint *model, const char *path, struct err *e);
/* If the file has the tensor rope_freqs.weight: sets config.rope_divisor, changes config.chat from
 * that of LLaMA 3 to that of 3.1, and marks the tensor in used[]. Does nothing for a folder. -1:
 * EXIT_BAD_DATA. */
int checkpoint_gguf_rope(struct checkpoint *model, unsigned char *used, struct err *e);
/* The chat template and the special tokens of the file, as tokenizer_config.json has them; the
 * caller's. */
json_t *checkpoint_gguf_chat(const struct checkpoint *model);

/* checkpoint-ids.c. For a drafter with config.chains: sets model->ids and model->passed, sets
 * config.embeds to whether the file has an embedding, and marks the tensors in passed[] in used[].
 * Does nothing for other models. -1: EXIT_BAD_DATA. */
int checkpoint_find_ids(struct checkpoint *model, unsigned char *used, struct err *e);
/* Sets model->ids for random weights: evenly spread over the vocabulary. */
void checkpoint_spread_ids(struct checkpoint *model);

/* Writes config.json and model.safetensors (dtype "F32" or "BF16") in the family's own names.
 * weights(ctx, role, layer) returns the rows*cols floats of a tensor, borrowed until the next call.
 * -1: EXIT_CANNOT_CREATE, EXIT_BUSY, EXIT_IO; EXIT_INTERNAL: the dtype is another one, or the
 * family cannot be written. */
int checkpoint_save(const struct config *config, const char *folder, const char *dtype,
                    const float *(*weights)(void *ctx, enum role role, size_t layer), void *ctx,
                    struct err *e);
