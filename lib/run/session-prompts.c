/* session-prompts.c - see session.h. Points name chat templates. Each template is chosen once, and
 * all prompts are encoded by each template. */
#include <string.h>

#include "lib/run/session.h"

/* Chooses the template that a word of --chat names. Returns -1 if there is none, or if another word
 * names that template too, because the points of the two words would be the same. */
static int choose_template(struct session *session, const struct settings *point,
                           struct prompt_encoder *encoder, struct chat_choice *choice,
                           struct err *e)
{
    char word[SETTINGS_WORD];
    const size_t at = settings_count(point, "chat_template");
    settings_word(point, settings_find(point->table, "chat_template"), word);
    if (prompt_encoder_make(encoder, &session->checkpoint, session->tokenizer, word, choice, e))
        return -1;
    session->chat[at] = chat_name(encoder->chat); /* a constant */
    encoder->parse_special = session->job->args->parse_special;
    if (choice->unknown)
        log_warn(&session->log, "W109", "%s", choice->said.text);
    else if (*choice->said.text)
        log_note(&session->log, "%s", choice->said.text);
    for (size_t i = 0; i < CHAT_WORDS; i++)
        if (i != at && session->chat[i] && !strcmp(session->chat[i], session->chat[at]))
            return err_set(e, EXIT_BAD_USAGE, "--chat: two of its words name the template %s for "
                           "this model: expected different templates", session->chat[at]);
    return 0;
}

int session_read_prompts(struct session *session, struct err *e)
{
    const struct job *job = session->job;
    struct prompt_encoder encoder[CHAT_WORDS];
    const struct prompt_encoder *used[CHAT_WORDS] = {0};
    struct chat_choice choice[CHAT_WORDS] = {{0}};
    int bad = 0;
    for (size_t i = 0; i < job->plan->points && !bad; i++) {
        const size_t at = settings_count(&job->plan->point[i], "chat_template");
        if (used[at])
            continue;
        used[at] = &encoder[at];
        bad = choose_template(session, &job->plan->point[i], &encoder[at], &choice[at], e);
    }
    bad = bad || promptset_read(&session->prompts, job->files, job->n_files,
                                job->args->common.limit, used, e);
    for (size_t i = 0; i < CHAT_WORDS; i++)
        chat_free(choice[i].chosen);
    if (bad)
        return -1;
    memcpy(session->workload, session->prompts.in.sha256, SETTINGS_ID - 1);
    return 0;
}
