/* identity.h - checks, while records are read, that the records of a point have one origin. All
 * tools that reduce records read records through this check. Each of these is refused:
 *
 *     two checkpoints, or weights named by some records only     weights.h
 *     another unit or direction than that of the metric, or two  scale.h
 *     two judges of a metric, or two layers of an encoder        judges.h
 *     two values of a setting                                    about_difference()
 *     a generation that contradicts the meta record of its stream in launch, prompts, tokenizer,
 *     chat template, model, arch or weights_random; workload and tokenizer need 12 characters
 *     two seeds in one stream, or another seed than in its meta record without --schedule
 *     a quality whose seed is no whole number or whose summary is no boolean
 *     a metric of a quality that has a workload in some records of its point and none in others
 *     two builds (version and commit) of the engine behind the generations of a point on one
 *     machine
 *     two streams that did the same work on one machine with different library_choices
 *     two different prompts of a point with one id and seed, if both streams name one file of
 *     prompts
 *     two launches that have an answer with the same start and times: one is a copy
 *
 * Builds and choices may differ between machines. Generations after an `end` record belong to no
 * meta record. Records derived from generations name no build, so builds are compared for
 * generations only.
 *
 *     struct identity identity = {0};
 *     while (...)
 *         if (identity_fits(&identity, record, reader, &bad) ||
 *             identity_check(&identity, record, reader, &e)) ...
 *     identity_free(&identity); */
#pragma once

#include <jansson.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/base/places.h"
#include "lib/record/rec.h"
#include "lib/record/weights.h"

/* Hashes, and a value for each: that of the first record with this hash. */
struct firsts {
    struct places hashes;
    uint64_t *value; /* [cap] the value of each place of `hashes` */
    size_t cap;
};

/* The state of the check. All members are 0 before the first record. */
struct identity {
    struct weights weights;
    json_t *judges;  /* `seen` of judges_check() */
    json_t *scales;  /* `firsts` of scale_check() */
    json_t *points;  /* point -> {about, where, builds: {machine -> {commit, where}}, sums, parts:
                      * {metric of a quality -> 1 if its records name the workload}} */
    json_t *seed;    /* the seed of the stream, if a schedule has it; NULL: unknown yet */
    json_t *maker;   /* meta record of the generator whose stream is read; NULL: none */
    json_t *work;    /* machine and `done` of a stream that ended -> {choices, where} */
    json_t *choices; /* library_choices of the last generation of the stream; NULL: none, or prompts
                      * arrive at random times */
    uint64_t done;   /* the work of the stream: the sum of the hashes of its generations, which does
                      * not depend on their order */
    struct firsts answers; /* hash of point, id of the prompt, start and times of an answer -> its
                            * launch */
    struct firsts prompts; /* hash of point, id, seed and file of prompts -> hash of the prompt, of
                            * its number of tokens and of the expected answer */
};
/* Takes the next record of `in`. Returns -1 (EXIT_BAD_DATA) if the record is refused. The message
 * says where the record is and what contradicts it. */
int identity_check(struct identity *identity, const json_t *record, struct rec_reader *in,
                   struct err *e);
/* To be called before identity_check(). Returns -1 (EXIT_BAD_DATA) if a setting of the record has a
 * wrong type or is out of range. The record is then bad and no record of its point: the caller does
 * not give it to identity_check(). Only records that begin a point are checked, because
 * identity_check() compares all others with them. */
int identity_fits(const struct identity *identity, const json_t *record, struct rec_reader *in,
                  struct err *e);
void identity_free(struct identity *identity);
