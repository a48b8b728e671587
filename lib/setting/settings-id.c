/* settings-id.c - computes the identity of a point or series: a hash of a JSON object. Its members
 * are sorted by name, so that the order of a table or of the command line does not change the
 * hash. */
#include "lib/setting/settings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/hash.h"

void settings_id(const json_t *about, const char *without, char id[SETTINGS_ID])
{
    json_t *kept = json_object();
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)about, key, value)
        if (!json_is_null(value) && (!without || strcmp(key, without)))
            json_object_set(kept, key, value);
    char *text = json_dumps(kept, JSON_COMPACT | JSON_SORT_KEYS | JSON_REAL_PRECISION(15)), hex[65];
    if (!text)
        err_machine(__FILE__, __LINE__, "cannot write an object as text (out of memory)");
    hash_bytes(text, strlen(text), hex);
    snprintf(id, SETTINGS_ID, "%.*s", SETTINGS_ID - 1, hex);
    free(text);
    json_decref(kept);
}
