/* served.h - what a server says about itself: the model, and the program with its version. */
#pragma once

#include "lib/base/err.h"
#include "lib/remote/http.h"

struct served {
    char *model; /* name for requests; owned */
    char *stack; /* "llamacpp b123-abc", "vllm 0.10.1"; owned */
};
/* Waits at most `seconds` for each answer. model: the name, or NULL: the only model of /models.
 * stack: the name of the stack, or NULL: by /models, /version (vLLM) and /props (llama.cpp). -1:
 * EXIT_NO_DEVICE (no server), EXIT_BAD_USAGE (no model, or several: *e lists them). */
int served_ask(struct served *served, struct http *http, const char *model, const char *stack,
               double seconds, struct err *e);
void served_free(struct served *served);
