/* identity.h - checks, while records are read, that the records of a point have one origin. All
 * tools that reduce records read them through this check. Each of these is refused:
 *
 *     two checkpoints, or a named one and an unnamed one     weights.h
 *     two values of a setting                                about_difference()
 *     a generation that contradicts the meta record of its stream: launch, prompts, tokenizer,
 *     model, arch, weights_random
 *     two builds (version and commit) of the engine behind the generations of a point
 *     two streams that did the same work with other choices of the library
 *     two prompts of one id in streams of one file of prompts
 *     one answer, with its start and times, in two launches: a copied launch
 *
 * Two machines may have two builds and two choices. Records after `end` belong to no meta record.
 * Records derived from generations name no build, so their builds are not compared.
 *
 *     struct identity identity = {0};
 *     while (...) if (identity_check(&identity, record, reader, &e)) ...
 *     identity_free(&identity); */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/places.h"
#include "lib/record/rec.h"
#include "lib/record/weights.h"

/* What was read so far; begins as zeroes. */
struct identity {
    struct weights weights;
    json_t *points;  /* point -> {about, where, builds: {machine -> {commit, where}}} */
    json_t *maker;   /* meta record of the generator whose stream is read; NULL: none */
    json_t *work;    /* machine and work of a stream -> {choices, where} */
    json_t *choices; /* library_choices of the last generation of the stream; NULL: none */
    uint64_t done;   /* sum of hashes of the generations of the stream, so in any order */
    struct places answers; /* hashes of an answer and its times */
    int64_t *launch;       /* [launch_cap] the launch of each place of `answers` */
    size_t launch_cap;
    struct places prompts; /* hashes of point, file of prompts, id */
    uint64_t *asked;       /* [asked_cap] a hash of the prompt of each place of `prompts` */
    size_t asked_cap;
};
/* Takes the next record of `in`. -1 (EXIT_BAD_DATA): it is refused. The message has both values and
 * both places. */
int identity_check(struct identity *identity, const json_t *record, struct rec_reader *in,
                   struct err *e);
void identity_free(struct identity *identity);
