/* reply.h - the answer of an OpenAI-type server to one request, put together from its events: the
 * text with the time of each emission, the server's own counts, and why it stopped.
 *
 * An event is a JSON object {"choices":[{"text": or "delta":{"content":}, "finish_reason":}]},
 * {"usage":{"prompt_tokens":, "completion_tokens":}}, {"error":{"message":}}, or the text [DONE].
 * A body that is no event stream is one event, with "message" in the place of "delta". The text of
 * "reasoning_content" (if that is missing, of "reasoning") counts as text, because its tokens took
 * time too. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct reply_emission { int64_t ns; size_t end; }; /* when it came; length of the text then */
struct reply_count { int is; int64_t n; };             /* is 0: the server sent none */
struct reply { /* begins as zeroes */
    struct buf text;              /* UTF-8 */
    struct reply_emission *emit;  /* [n] the events that added text; owned */
    size_t n, cap, events;
    struct reply_count prompt_tokens, new_tokens; /* of "usage" */
    struct reply_count cached_tokens; /* tokens of the prompt that the server did not compute */
    const char *stop;             /* "eos", "length"; NULL: not yet known; static */
    int is_done;                  /* 1: [DONE] came */
};
/* Takes an event that came at `ns`. -1 (EXIT_BAD_DATA): half a character, not JSON, an error of
 * the server, a member of another type, a stop for another reason, or text after the end. */
int reply_event(struct reply *reply, const char *data, size_t n, int64_t ns, struct err *e);
/* Returns -1 (EXIT_BAD_DATA) if the answer is not complete. */
int reply_check(const struct reply *reply, struct err *e);
void reply_free(struct reply *reply);
