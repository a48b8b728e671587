/* decoder.h - a way of generating, as the runner (lib/run) sees it. One row a decoder: what its
 * settings are, what they demand of each other, what a batch takes, how a batch is generated.
 */
#ifndef DECODE_DECODER_H
#define DECODE_DECODER_H

#include "lib/decode/commit_trace.h"
#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/network/work.h"
#include "lib/setting/settings.h"

struct latent_source; /* lib/latent/latent_source.h */

/* What a batch is given beside its point. */
struct decode_env {
    int prepare;  /* 1: each kind of pass that can come is prepared before the clock begins */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* non-zero: leave after this pass; may be NULL */
    const struct commit_trace *replay; /* of points that replay one (commit_trace_check); or NULL */
    const struct network *companion; /* a second network: a draft model that guesses tokens
                                      * (autoregress.h), or the model itself in another format
                                      * (diffuse.h); or NULL */
    const struct observer *observer; /* told of each pass; may be NULL */
    const struct latent_source *latents; /* beside fitted ones; NULL: none, and none is kept */
};

/* Values of options that only some decoders have; NULL: not given. */
struct decoder_extras {
    const char *draft;        /* folder of a draft model */
    const char *early_quant;  /* format of the first steps */
    const char *commit_trace; /* file with the passes to replay */
    const char *z_file;       /* file with the latents to read */
    int keep_latents;         /* 1: records hold the latents */
};
enum { DECODER_EXTRAS = 4 };

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
    /* 0, or -1 with EXIT_BAD_USAGE naming what the point demands of the model and does not get;
     * NULL: any model will do. What it demands of no model: settings_check(). */
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
    /* Appends the options of this decoder alone, at most DECODER_EXTRAS; returns how many. NULL: it
     * has none. */
    size_t (*extra_options)(struct decoder_extras *to, struct opt *options);
    const char *companion_setting; /* asks for decode_env.companion; NULL: no setting does */
    int companion_is_model;        /* 1: it is the model itself, in the format of --early-quant */
    /* 0, or -1 with EXIT_NO_DEVICE: the back end has not what the point needs. NULL: any will do */
    int (*able)(const struct settings *s, const struct backend *b, struct err *e);
    /* Opens what some of the points read beside the prompts (latent_source.prior), once the weights
     * are loaded, and closes it. -1: EXIT_NO_INPUT, EXIT_BAD_DATA. NULL: no point reads any. */
    int (*open_prior)(struct latent_source *s, const struct settings *point, size_t points,
                      const char *folder, const struct config *c, struct backend *b,
                      struct err *e);
    void (*close_prior)(struct latent_source *s);
};
extern const struct decoder decoder_autoregress, decoder_diffuse;

/* The optimisations that the ablation switches of a point leave out. */
struct variant decoder_variant(const struct settings *s);

#endif
