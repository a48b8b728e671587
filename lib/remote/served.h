/* served.h - asks a server for the name of its model, and for its program and version. */
#pragma once

#include "lib/base/err.h"
#include "lib/remote/http.h"

struct served {
    char *model; /* name for requests; owned */
    char *stack; /* "llamacpp b123-abc", "vllm 0.10.1"; owned */
};
/* Fills *served; waits at most `seconds` for each answer. model: its name; NULL: the only model
 * that /models lists. stack: its name; NULL: asks /models, /version (vLLM) and /props (llama.cpp).
 * Returns -1: EXIT_NO_DEVICE (no server), EXIT_BAD_USAGE (no model or several; *e lists them). */
int served_ask(struct served *served, struct http *http, const char *model, const char *stack,
               double seconds, struct err *e);
void served_free(struct served *served);
