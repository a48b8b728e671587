/* contestant.h - finds out whether a judge is one of the models that it judges. Such a judge is not
 * independent, because a model finds its own texts probable. */
#pragma once

#include <jansson.h>

/* Sets hex to the SHA-256 over the hashes of all weight files (*.safetensors) of the member
 * `checkpoint` of a meta record; to "" if it names none. */
void contestant_weights(const json_t *checkpoint, char hex[65]);
/* 1: the meta or generation record comes from a model with these weights ("": unknown), or with
 * this name. */
int contestant_is(const json_t *record, const char *weights, const char *name);
