/* session.h - what a generator process holds while it runs: model, prompts, back end, output.
 *
 * Everything that can be refused is refused in session_open, before the first record: settings,
 * files, checkpoint, prompts, device.
 */
#ifndef RUN_SESSION_H
#define RUN_SESSION_H

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
    const struct job *job;       /* as it is run: what was asked, or `own` */
    struct job own;              /* with args, which memory may have made others (session_plan) */
    struct job_args args;
    struct log log;
    struct checkpoint checkpoint;
    struct tokenizer *tokenizer; /* NULL: none */
    const char *chat;            /* the chat template in use, or "none" */
    struct promptset prompts;
    char workload[SETTINGS_ID];  /* of the prompts: the beginning of their hash */
    struct backend *backend;
    struct gpu_monitor monitor;
    struct host_monitor host;
    int timed;                   /* 1: its batches are watched, and run again when disturbed */
    int64_t batches, again;      /* timed ones so far; of these run again */
    struct network network;
    int loaded;                  /* 0: the weights did not fit, every record is oom */
    int64_t load_peak;           /* resident set up to the end of loading, at most; -1: not told */
    size_t load_allocated;       /* of the back end while loading, at most */
    size_t live;                 /* bytes that the last batch left in use; 0: none ran */
    int parted;                  /* 1: it was said that a batch runs in parts */
    struct turns *turns;         /* NULL: this process works alone */
    struct handicap handicap;    /* of --handicap */
    struct latent_source latents; /* of --z-file, --keep-latents and z=dit */
    struct slowdown *slowdown;   /* [points]; NULL: no layer is outside */
    struct companion companion;
    struct rec_writer out;
    int writing;
    struct selfcheck selfcheck;
    struct progress progress;
    struct watcher watch;
    int64_t seq, batch_id;
    int worst;                   /* exit code so far */
    int64_t said;                /* prompts that failed: the first are named on standard error */
};

/* Opens all, writes `meta` and the error records of bad prompts, loads the weights. -1: what is
 * open is closed by session_close all the same. */
int session_open(struct session *s, struct err *e);
/* Opens no more than it needs and writes the records of --explain in place of a run. */
int session_explain(struct session *s, struct err *e);
/* As --on-oom says, with the device open and nothing loaded (session-plan.c). -1: no device. */
int session_plan(struct session *s, struct err *e);
/* Where layers are offloaded, how much slower each point is for it: found out and said. -1: there
 * can be no store. */
int session_slowdown(struct session *s, struct err *e);
/* One line before hours are spent on records that will say oom. To refuse is up to the loading. */
void session_foresee(struct session *s);
/* Writes `end` unless `bad`, closes all. The exit code. */
int session_close(struct session *s, int bad, struct err *e);

void session_worse(struct session *s, int code); /* keeps the worst exit code */
int session_stopped(const struct session *s);    /* 1: a signal came */
/* An error record, and for the first ones a line. A sound prompt that this model cannot answer
 * (exit 1) is bad data to it. */
int session_error(struct session *s, const struct err *what, const struct prompt *p, struct err *e);

#endif
