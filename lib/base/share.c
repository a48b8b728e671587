/* share.c - see share.h. The environment comes first, because the user set it on purpose. The place
 * beside the executable works wherever the folder is moved. Whether the file can be read is checked
 * by the code that opens it. */
#include "lib/base/share.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"

char *share_find(const char *name, struct err *e)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
#ifdef DATADIR
    const char *installed = DATADIR;
#else
    const char *installed = NULL;
#endif
    const struct {
        const char *folder, *rest;
    } places[] = {{getenv("CROSSOVER_SHARE"), ""},
                  {self, "/../.."},
                  {self, "/../share/crossover"},
                  {installed, ""}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        if (!places[i].folder || !*places[i].folder)
            continue;
        char *path = mem_format("%s%s/%s", places[i].folder, places[i].rest, name);
        if (file_exists(path))
            return path;
        free(path);
    }
    int slash_at = (int)strcspn(name, "/");
    err_set(e, EXIT_NO_INPUT, "%s: not found beside the executable; set CROSSOVER_SHARE to the "
            "folder that holds %.*s/", name, slash_at, name);
    return NULL;
}
