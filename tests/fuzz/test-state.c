/* test-state.c - feeds train.state, from which a training continues: an accepted state has all
 * values, a step, and the settings of the training. */
#include "lib/checkpoint/family.h"
#include "lib/train/training_note.h"
#include "tests/fuzz/fuzz.h"
#include "tests/model/trained.h"

enum { ROWS = 8 };

/* A trainer of a small network; the same one every time. */
static struct trainer *trainer(void)
{
    static struct trainer *t;
    struct err e = {0};
    struct config c = trained_config(&llama_family, MIXER_ATTENTION, 1, 8, 8);
    c.layers = 1;
    if (!t)
        t = trainer_make(&c, backend_open("ref", NULL, 1, 0, &e), 5, ROWS, DTYPE_F32, &e);
    if (!t)
        files_fail(e.text);
    return t;
}

static json_t *note(void)
{
    return json_pack("{s:i, s:s}", "--steps", 100, "corpus", "0123");
}

static int fuzz_seed(size_t i, struct buf *to)
{
    struct err e = {0};
    json_t *mine = note();
    const char *path = files_at("train.state");
    if (i == 1)
        json_object_set_new(mine, "corpus", json_real(0.5));
    if (i < 2 && (trainer_save(trainer(), path, mine, &e) || file_read(path, 1 << 20, to, &e)))
        files_fail(e.text);
    json_decref(mine);
    return i < 2;
}

static void fuzz_one(const char *bytes, size_t n)
{
    struct err e = {0};
    json_t *mine = note(), *theirs = NULL;
    if (trainer_restore(trainer(), fuzz_file(bytes, n), &theirs, &e) ||
        training_note_check(mine, theirs, "train.state", &e)) {
        fuzz_check_refused(&e);
        fuzz_check(e.code == EXIT_BAD_DATA);
    } else {
        fuzz_check(trainer_step(trainer()) >= 0 && json_is_object(theirs));
    }
    json_decref(mine);
    json_decref(theirs);
}

FUZZ_TARGET("state", 300)
