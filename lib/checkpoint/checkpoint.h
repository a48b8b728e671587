/* checkpoint.h - a model on disk: config, proved tensors in their roles, tokenizer folder.
 *
 * The roles (role.h) hide what each family calls its tensors.
 * At open every expected tensor is there with the exact shape, and none is left over that could
 * change a result: ignored are buffers that the config already says, and biases of zeros.
 */
#ifndef CHECKPOINT_CHECKPOINT_H
#define CHECKPOINT_CHECKPOINT_H

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
    struct tensors *tensors; /* NULL for synth: */
    struct family_extras extras; /* keys of config.json that were passed over */
    const struct tensor **role; /* [ROLE_COUNT * L], internal; NULL for synth: */
    struct codes *codes;     /* [ROLE_COUNT * L] when packed, else NULL; scale NULL: not codes */
    float *normal;           /* of synth_table, for synth:, else NULL */
    struct draw *draw;       /* [ROLE_COUNT * L] how each matrix of synth: is drawn, else NULL */
};

/* name: folder, org/name[@rev] in the cache, or synth:SHAPE. */
int checkpoint_open(struct checkpoint *c, const char *name, uint64_t synth_seed, struct err *e);
/* The same, with keys "KEY,KEY" of config.json that it does not know passed over (family.h). */
int checkpoint_open_ignoring(struct checkpoint *c, const char *name, uint64_t synth_seed,
                             const char *keys, struct err *e);
/* *c = drawn weights of any shape, as synth: has them. */
void checkpoint_draw(struct checkpoint *c, const struct config *shape, uint64_t seed);
/* What is odd and does no harm: a warning or a note each. */
void checkpoint_say(const struct checkpoint *c, const struct log *log);
/* The stored tensor in a role; layer is ignored where there are none. NULL for synth. */
const struct tensor *checkpoint_tensor(const struct checkpoint *c, enum role r, size_t layer);
/* Widens rows x cols values of any stored dtype (F32, F16, BF16, codes) to float. For synth
 * checkpoints the values are drawn: normal, std 0.02 (gains of norms: ones), a function of (seed,
 * role, layer, index). */
void checkpoint_floats(const struct checkpoint *c, enum role r, size_t layer, float *out);
/* One matrix of an open checkpoint, and it as the source of mat_make, which reads *w and the
 * checkpoint as long as it is used: bf16 values straight from the mapped file where they are
 * aligned, the codes of a packed matrix, any rows as floats on demand, from several threads at
 * once. */
struct weight {
    const struct checkpoint *checkpoint;
    enum role role;
    size_t layer;
};
struct mat_source checkpoint_source(const struct weight *w);
/* Tells the system that the file's part that holds a matrix will be read soon, in whole, or (need
 * 0) is done with: then it leaves our address space but stays in the page cache. */
void checkpoint_advise(const struct weight *w, int need);
/* -1 (EXIT_BAD_DATA) at the first NaN, infinity or matrix of zeros, named: reads every weight. */
int checkpoint_check_values(const struct checkpoint *c, struct err *e);
int checkpoint_check_tensor(const struct checkpoint *c, enum role r, size_t layer, struct err *e);
/* "F32", "F16" or "BF16": the dtype of the matrices ("F32" when they differ, "BF16" for synth), for
 * a packed checkpoint that of the matrices that were packed. */
const char *checkpoint_dtype(const struct checkpoint *c);
/* *out = the tokenizer of tokenizer.json, the caller's; NULL when there is none, as for synth:.
 * -1: it is broken, or has ids that the embedding lacks (EXIT_BAD_DATA). */
int checkpoint_tokenizer(const struct checkpoint *c, struct tokenizer **out, struct err *e);
/* The path of the i-th file that the model is read from, the caller's; NULL: there are no more. */
char *checkpoint_file(const struct checkpoint *c, size_t i);
/* The chat template that the checkpoint comes with, for chat_choose; none for synth:. Sets all of
 * *out; checkpoint_chat_free is due, also after -1: a file that cannot be read or is not JSON. */
struct checkpoint_chat {
    struct chat_source source; /* borrows from what follows */
    char *path;
    struct buf text;           /* of chat_template.jinja */
    json_t *config, *processor; /* tokenizer_config.json, chat_template.json */
};
int checkpoint_chat(const struct checkpoint *c, struct checkpoint_chat *out, struct err *e);
void checkpoint_chat_free(struct checkpoint_chat *c);
/* Names and SHA-256 of the files, shapes, parameters: for meta records. The caller's reference.
 * NULL: a file cannot be read (EXIT_NO_INPUT, EXIT_IO). */
json_t *checkpoint_describe(const struct checkpoint *c, struct err *e);
void checkpoint_close(struct checkpoint *c);

/* Writes config.json and model.safetensors (dtype "F32" or "BF16") in the family's own names.
 * weights(ctx, role, layer) returns rows*cols floats, borrowed until the next call. */
int checkpoint_save(const struct config *c, const char *folder, const char *dtype,
                    const float *(*weights)(void *ctx, enum role r, size_t layer), void *ctx,
                    struct err *e);

#endif
