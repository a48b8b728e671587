/* session.h - the state of a generator process: model, prompts, back end, output.
 *
 * session_open checks settings, files, checkpoint, prompts and device before the first record is
 * written, so a run that cannot work is refused early. */
#pragma once

#include "lib/base/cli/log.h"
#include "lib/base/cli/progress.h"
#include "lib/latent/latent_source.h"
#include "lib/record/rec.h"
#include "lib/run/companion.h"
#include "lib/run/monitor/gpu_monitor.h"
#include "lib/run/monitor/host_monitor.h"
#include "lib/run/job.h"
#include "lib/run/prompts/promptset.h"
#include "lib/run/selfcheck.h"
#include "lib/run/turns.h"
#include "lib/run/probe/slowdown.h"
#include "lib/run/watch/watcher.h"

struct session {
    const struct job *job;       /* the job as it runs: the one given, or `own` */
    struct job own;              /* a copy with args, which session_settle_memory may change */
    struct job_args args;
    struct log log;
    struct checkpoint checkpoint;
    struct tokenizer *tokenizer; /* NULL: none */
    const char *chat[CHAT_WORDS]; /* by word of --chat: the template in use, or "none"; NULL: no
                                   * point names the word */
    struct promptset prompts;
    char workload[SETTINGS_ID];  /* identity of the prompts: start of their hash */
    struct backend *backend;
    struct gpu_monitor monitor;
    struct host_monitor host;
    int timed;                   /* 1: batches are watched, and repeated if disturbed */
    int64_t batches, again;      /* timed batches so far; repeats of disturbed batches so far */
    struct network network;
    int loaded;                  /* 0: the weights did not fit, every record is oom */
    int64_t load_peak;           /* peak resident set until loading ended; -1: unknown */
    size_t load_allocated;       /* peak bytes of the back end while loading */
    size_t live;                 /* bytes in use after the last batch; 0: none ran */
    int parted;                  /* 1: the note about halved batches was printed */
    struct turns *turns;         /* NULL: this process works alone */
    struct handicap handicap;    /* for --handicap */
    struct latent_source latents; /* for --z-file, --keep-latents and z=dit */
    struct slowdown *slowdown;   /* [points]; NULL: no layer is offloaded */
    struct companion companion;
    struct rec_writer out;
    int writing;
    struct selfcheck selfcheck;
    struct progress progress;
    struct watcher watch;
    int64_t seq, batch_id;
    int worst;                   /* exit code so far */
    int64_t said;                /* failed prompts named on standard error so far */
};

/* Opens everything, writes `meta` and the error records of bad prompts, loads the weights. Call
 * session_close also after -1. */
int session_open(struct session *session, struct err *e);
/* Writes the records of --explain instead of running; opens only what they need. */
int session_explain(struct session *session, struct err *e);
/* Reads the prompts as each chat template of the plan writes them (session-prompts.c). */
int session_read_prompts(struct session *session, struct err *e);
/* Applies --on-oom and the maps `auto`, with the device open and nothing loaded (session-memory.c).
 * Returns -1 if there is no device. */
int session_settle_memory(struct session *session, struct err *e);
/* If layers are offloaded, predicts and prints the slow-down of each point. Returns -1 if the store
 * cannot be opened. */
int session_slowdown(struct session *session, struct err *e);
/* Warns if the run will give oom records, before hours are spent on the run. Loading may still end
 * the run. */
void session_foresee(struct session *session);
/* Writes `end` unless `bad`, closes everything. Returns the exit code. */
int session_close(struct session *session, int bad, struct err *e);

void session_worse(struct session *session, int code); /* keeps the worse exit code */
int session_stopped(const struct session *session);    /* 1: a signal was received */
/* Writes an error record; the first ones are also printed. A valid prompt that this model cannot
 * answer (exit 1) counts as bad data. */
int session_error(struct session *session, const struct err *what, const struct prompt *prompt,
                  struct err *e);
