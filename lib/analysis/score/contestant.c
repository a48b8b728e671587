/* contestant.c - see contestant.h. A meta record describes the checkpoint with the hashes of its
 * files. Other records have only the name of the model. A user may have changed this name, so
 * hashes are compared too where they are known. */
#include "lib/analysis/score/contestant.h"

#include <string.h>

#include "lib/base/buf.h"
#include "lib/base/hash.h"
#include "lib/record/rec.h"

void contestant_weights(const json_t *checkpoint, char hex[65])
{
    static const char suffix[] = ".safetensors";
    const size_t tail = sizeof suffix - 1;
    struct buf all = {0};
    size_t i;
    json_t *file;
    json_array_foreach(json_object_get(checkpoint, "files"), i, file) {
        const char *name = rec_text(file, "name"), *sum = rec_text(file, "sha256");
        const size_t n = name ? strlen(name) : 0;
        if (sum && n > tail && !strcmp(name + n - tail, suffix))
            buf_format(&all, "%s\n", sum);
    }
    *hex = 0;
    if (all.len)
        hash_bytes(all.data, all.len, hex);
    buf_free(&all);
}

int contestant_is(const json_t *record, const char *weights, const char *name)
{
    char hex[65] = "";
    const json_t *checkpoint = json_object_get(record, "checkpoint");
    const char *model = rec_text(checkpoint ? checkpoint : record, "model");
    if (checkpoint)
        contestant_weights(checkpoint, hex);
    return (*hex && !strcmp(hex, weights)) || (model && !strcmp(model, name));
}
