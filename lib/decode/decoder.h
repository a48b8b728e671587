/* decoder.h - a decoder as the runner (lib/run) sees it: its settings, the models that it runs, the
 * memory and passes of a batch, and the function that generates one. */
#pragma once

#include "lib/decode/generation.h"
#include "lib/decode/observer.h"
#include "lib/network/work.h"
#include "lib/setting/settings.h"

struct latent_source; /* lib/latent/latent_source.h */

/* Inputs of a batch beside its point and prompts. */
struct decode_env {
    int prepare;  /* 1: run each kind of pass once before the clock begins */
    uint64_t seed;
    const volatile sig_atomic_t *stop; /* non-zero: stop after this pass; may be NULL */
    const struct network *companion; /* a draft model (autoregress.h), or NULL */
    const struct observer *observer; /* called after each pass; may be NULL */
    const struct latent_source *latents; /* latents that are not fitted; NULL: none, and
                                          * records keep no latents */
};

/* Values of options that only some decoders have; NULL: not given. */
struct decoder_extras {
    const char *draft;        /* folder of a draft model */
    int draft_usual;          /* 1: no option sets how many tokens the draft model guesses */
    const char *z_file;       /* file with the latents to read */
    int keep_latents;         /* 1: records hold the latents */
};
enum { DECODER_EXTRAS = 3 };

/* Two kinds of passes of a batch: `whole`, over whole texts (a prefill, whole canvases), and
 * `most`, a typical one of all other passes. */
struct passes {
    struct extent whole, most; /* rows, pairs, answers and read slots of a pass */
    double whole_share;        /* share of whole passes; 1: all */
};

struct decoder {
    const char *tool;                    /* "gen-llada" */
    unsigned paradigms;                  /* bits 1 << enum paradigm of the models that it runs */
    const struct settings_table *table;  /* table->system: name of the decoder in schedules */
    /* 0, or -1 with EXIT_BAD_USAGE if the model lacks what the point needs; NULL: any model will
     * do. Constraints among settings: settings_check(). */
    int (*check)(const struct settings *settings, const struct config *config, struct err *e);
    /* Memory of a batch; only the lengths of the prompts count. */
    struct memory_estimate (*estimate)(const struct network *n, const struct settings *settings,
                                       const struct decode_env *env,
                                       const struct generation_input *in, size_t batch);
    struct passes (*passes)(const struct settings *settings, const struct generation_input *in,
                            size_t batch);
    /* Generates one batch: out[batch] is zero on entry, the caller's (generation_free). */
    void (*run)(const struct network *n, const struct settings *settings,
                const struct decode_env *env, const struct generation_input *in, size_t batch,
                struct generation *out, struct batch_trace *trace);
    /* Shortens a point for the self-check: one prompt, and few tokens if the settings allow. */
    void (*shorten)(struct settings *settings);
    /* Appends the options of this decoder alone, at most DECODER_EXTRAS; returns how many. NULL: it
     * has none. */
    size_t (*extra_options)(struct decoder_extras *to, struct opt *options);
    const char *companion_setting; /* name of the setting that is above 0 at points which use
                                    * decode_env.companion; NULL: there is none */
    /* 0, or -1 with EXIT_NO_DEVICE if the back end lacks what the point needs; NULL: any will
     * do. */
    int (*able)(const struct settings *settings, const struct backend *backend, struct err *e);
    /* Opens and closes the prior that some points draw from (latent_source.prior); call open_prior
     * after loading the weights. -1: EXIT_NO_INPUT, EXIT_BAD_DATA. NULL: no point uses one. */
    int (*open_prior)(struct latent_source *source, const struct settings *point, size_t points,
                      const char *folder, const struct config *config, struct backend *backend,
                      struct err *e);
    void (*close_prior)(struct latent_source *source);
};
extern const struct decoder decoder_autoregress, decoder_diffuse;

/* The optimisations that the ablation switches of a point leave out. */
struct variant decoder_variant(const struct settings *settings);
