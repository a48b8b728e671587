/* job.h - the task of a generator process: its options, its plan, its prompts. All parts of the
 * runner read this struct. */
#pragma once

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/base/cli/opt.h"
#include "lib/decode/decoder.h"
#include "lib/run/engine.h"
#include "lib/run/run_plan.h"

struct job_args {
    struct common common;
    struct engine engine;
    struct decoder_extras extras;
    const char *schedule, *trace, *settings, *on_oom, *trim;
    const char *turns, *party;       /* values of --turns and --party (turns.h); NULL: not given */
    int64_t handicap;                /* run every N-th pass twice; 0: none */
    int64_t warmup, warmup_most, again, repeat, launch, idle_ms, selfcheck;
    int parse_special, halve, fresh, force, stream, explain;
};
#define JOB_DEFAULTS                                                                            \
    {.common = COMMON_DEFAULTS, .engine = ENGINE_DEFAULTS, .repeat = 1, \
     .idle_ms = 500, .selfcheck = -1, .on_oom = "fail", .trim = "batch"}

struct job {
    const struct decoder *decoder;
    const struct job_args *args;
    const struct run_plan *plan;
    const struct latent_source *latents; /* NULL before session_open */
    const json_t *meta;       /* members of the meta record; NULL before session_open */
    const json_t *options;    /* of --settings; NULL: none */
    const char *const *files; /* prompts; n_files 0: standard input */
    size_t n_files;
    int argc;
    char **argv;
    int64_t process_ns;                /* clock_ns() when the process began */
    const volatile sig_atomic_t *stop; /* the last signal received, or 0 */
    void (*note_signal)(int);          /* the tool's handler: stores its argument in *stop */
};
