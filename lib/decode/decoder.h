/* decoder.h - a way of generating, as the runner (lib/run) sees it. One row a decoder: what its
 * settings are, what they demand of each other, what a batch takes, how a batch is generated.
 */
#ifndef DECODE_DECODER_H
#define DECODE_DECODER_H

#include "lib/decode/commit_trace.h"
#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/network/work.h"
#include "lib/record/settings.h"

struct latent_source; /* lib/latent/latent_source.h */

/* What a batch is given beside its point. */
struct decode_env {
    int prepare;  /* 1: each kind of pass that can come is prepared before the clock begins */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* non-zero: leave after this pass; may be NULL */
    const struct commit_trace *replay; /* of points that replay one (commit_trace_check); or NULL */
    const struct network *draft; /* guesses for the model (autoregress.h), or is the model itself in
                                  * another format (diffuse.h); or NULL */
    const struct observer *observer; /* told of each pass; may be NULL */
    const struct latent_source *latents; /* beside fitted ones; NULL: none, and none is kept */
};

/* The passes of a batch are of two kinds: over all that there is (a prefill, whole canvases), and
 * as most of the others are. */
struct passes {
    struct extent whole, most; /* rows, pairs, answers and slots that are read */
    double whole_share;        /* of all passes; 1: there are no others */
};

struct decoder {
    const char *tool;                    /* "gen-llada" */
    unsigned paradigms;                  /* bit 1 << enum paradigm: the models that it runs */
    const struct settings_table *table;  /* table->system: its name in schedules */
    /* Tokens that a point adds to a prompt at most. */
    size_t (*extent)(const struct settings *s);
    /* 0, or -1 with EXIT_BAD_USAGE naming the constraint that the point breaks. c: the model, or
     * NULL when it is not known yet. */
    int (*check)(const struct settings *s, const struct config *c, struct err *e);
    /* What a batch takes; of the prompts only their lengths count. */
    struct memory_estimate (*estimate)(const struct network *n, const struct settings *s,
                                       const struct decode_env *env,
                                       const struct generation_input *in, size_t batch);
    struct passes (*passes)(const struct settings *s, const struct generation_input *in,
                            size_t batch);
    /* Generates one batch: out[batch] zero on entry, each the caller's (generation_free). */
    void (*run)(const struct network *n, const struct settings *s, const struct decode_env *env,
                const struct generation_input *in, size_t batch, struct generation *out,
                struct batch_trace *trace);
    /* Shortens a point for the self-check: one prompt a batch, and few tokens where the method
     * allows it. */
    void (*shorten)(struct settings *s);
    int replays; /* 1: it can replay a commit trace */
    const char *drafts; /* the setting that asks for decode_env.draft; NULL: none does */
    /* 0, or -1 with EXIT_NO_DEVICE: the back end has not what the point needs. NULL: any will do */
    int (*able)(const struct settings *s, const struct backend *b, struct err *e);
    int early; /* 1: decode_env.draft is the model itself, in the format of --early-quant */
    int latents; /* 1: it can read latents of a file, and keep them */
    /* Opens what some of the points read beside the prompts (latent_source.prior), once the weights
     * are loaded, and closes it. -1: EXIT_NO_INPUT, EXIT_BAD_DATA. NULL: no point reads any. */
    int (*open_prior)(struct latent_source *s, const struct settings *point, size_t points,
                      const char *folder, const struct config *c, struct backend *b,
                      struct err *e);
    void (*close_prior)(struct latent_source *s);
};
extern const struct decoder decoder_autoregress, decoder_diffuse;

/* What a generator must deliver, in every table: `answer`, the text up to its end, where its clock
 * ends and it leaves the batch; or `fixed`, exactly so many tokens, whatever they say. Systems are
 * compared under one contract: an early end is an advantage of the text, not of the system. */
#define DECODER_CONTRACT_ROW(standard)                                                          \
    {"contract", 0, SETTING_CHOICE, 0, 0, "answer|fixed", standard, NULL, "contract", NULL,     \
     SETTING_SWEPT | SETTING_TEXT | SETTING_SPEED | SETTING_SHOWN,                              \
     "answer: to the end of the text; fixed: always the whole length"}

/* Who is in a batch, in every table. */
#define DECODER_ADMIT_ROW                                                                       \
    {"admit", 0, SETTING_CHOICE, 0, 0, "static|continuous", "static", NULL, "admit", NULL,     \
     SETTING_SWEPT | SETTING_SPEED,                                                             \
     "continuous: a prompt joins the batch when another one ends; static: all begin together"}

/* What is always on, and can be left out to see what it saves (struct variant), in every table. */
#define DECODER_VARIANT_ROWS                                                                    \
    {"attention", 0, SETTING_CHOICE, 0, 0, "tiled|dense|sliced", "tiled", NULL, "attention",    \
     NULL, SETTING_SWEPT | SETTING_SPEED,                                                       \
     "tiled: scores never exist but for a tile; dense: all of a layer do; sliced: those of "    \
     "some heads at a time"},                                                                   \
    {"attention_heads", 0, SETTING_INT, 1, 1 << 20, NULL, "1", "heads", "attention_heads",      \
     "attention=sliced", SETTING_SWEPT | SETTING_SPEED, "at a time, with all scores"},          \
    {"ffn", 0, SETTING_CHOICE, 0, 0, "fused|unfused", "fused", NULL, "ffn", NULL,               \
     SETTING_SWEPT | SETTING_SPEED,                                                             \
     "unfused: gate and up are products by themselves, with their results in memory"},          \
    {"head", 0, SETTING_CHOICE, 0, 0, "streamed|dense", "streamed", NULL, "head", NULL,         \
     SETTING_SWEPT | SETTING_SPEED,                                                             \
     "dense: logits of all rows by all ids exist before one of them is looked at"},
/* Of these rows. */
struct variant decoder_variant(const struct settings *s);

/* The row that every table has, the innermost one. */
#define DECODER_BATCH_ROW                                                                       \
    {"batch", 0, SETTING_INT, 1, 1 << 20, NULL, "1", "prompts", "batch", NULL,                 \
     SETTING_SWEPT | SETTING_SPEED | SETTING_SHOWN, "prompts generated together"}

#endif
