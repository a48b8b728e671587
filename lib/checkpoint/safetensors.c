/* safetensors.c - opens and checks files and folders of tensors. An index and its shards are
 * compared tensor by tensor.
 *
 * A file is opened once: fstat gives its size, the header is read and checked, the data are mapped.
 * Reading a mapping of a truncated file gives zeros or kills the process. So the exact size is
 * checked here, and again in safetensors_unchanged on the same descriptor. */
#include "lib/checkpoint/safetensors.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "lib/record/json.h"
#include "lib/checkpoint/gguf.h"
#include "lib/checkpoint/hub.h"
#include "lib/checkpoint/safetensors-header.h"
#include "lib/checkpoint/safetensors-series.h"

enum { INDEX_MAX_BYTES = 64 << 20, SHARD_NAME_MAX = 255 };

struct file {
    char *path;
    int fd;
    unsigned char *map;
    size_t size;
    struct timespec mtime;
};

struct tensors {
    struct file *files;
    size_t n_files, cap_files;
    struct tensor *list;          /* [count] by file in order of opening, then by offset */
    size_t *file_of;              /* [count] index into files */
    size_t count;
    const struct tensor **sorted; /* [count] by name */
    char *note;                   /* harmless oddities, or NULL */
    json_t *metadata;             /* keys of a GGUF file, or NULL */
};

static uint64_t little_endian(const unsigned char b[8])
{
    uint64_t v = 0;
    for (int i = 8; i-- > 0;)
        v = v << 8 | b[i];
    return v;
}

static int read_all(int fd, void *to, size_t n, off_t at)
{
    for (char *cursor = to; n > 0;) {
        ssize_t got = pread(fd, cursor, n, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            errno = got ? errno : ESTALE; /* the file is shorter than fstat said: it changed */
            return -1;
        }
        cursor += got;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

/* The probable format of a file that is not safetensors, for messages. */
static const char *guess_format(const unsigned char b[8])
{
    return !memcmp(b, "GGUF", 4)       ? " (this is a GGUF file; name it FILE.gguf)"
           : !memcmp(b, "PK\3\4", 4)   ? " (this is a PyTorch or zip file; use *.safetensors)"
           : !memcmp(b, "version ", 8) ? " (this is a git-lfs pointer; run git lfs pull)"
                                       : "";
}

/* Reads the 8 bytes of length and the header. The caller frees *text, also after an error. */
static int read_header(const struct file *of, char **text, size_t *n, struct err *e)
{
    unsigned char first[8];
    if (of->size < 8)
        return err_set(e, EXIT_BAD_DATA, "%s: file is %zu bytes, expected at least 8 + 2", of->path,
                       of->size);
    if (read_all(of->fd, first, 8, 0))
        return err_set(e, EXIT_IO, "%s: read error: %s", of->path, strerror(errno));
    uint64_t length = little_endian(first);
    if (length > HEADER_MAX_BYTES)
        return err_set(e, EXIT_BAD_DATA, "%s: header length %llu is above the limit of %d%s",
                       of->path, (unsigned long long)length, HEADER_MAX_BYTES, guess_format(first));
    if (length > of->size - 8)
        return err_set(e, EXIT_BAD_DATA, "%s: file is %zu bytes, header needs %llu", of->path,
                       of->size, (unsigned long long)length + 8);
    *n = (size_t)length;
    *text = mem_alloc(*n);
    return read_all(of->fd, *text, *n, 8)
               ? err_set(e, EXIT_IO, "%s: read error: %s", of->path, strerror(errno))
               : 0;
}

/* Sets size, mtime and map of a file with an open descriptor. */
static int map_file(struct file *of, struct err *e)
{
    struct stat st;
    if (fstat(of->fd, &st))
        return err_set(e, EXIT_NO_INPUT, "%s: %s", of->path, strerror(errno));
    if (!S_ISREG(st.st_mode))
        return err_set(e, EXIT_NO_INPUT, "%s: expected a regular file", of->path);
    of->size = (size_t)st.st_size;
    of->mtime = st.st_mtim;
    if (of->size == 0)
        return err_set(e, EXIT_BAD_DATA, "%s: file is 0 bytes, expected at least 8 + 2", of->path);
    void *map = mmap(NULL, of->size, PROT_READ, MAP_PRIVATE, of->fd, 0);
    if (map == MAP_FAILED)
        return err_set(e, err_reason(EXIT_IO), "%s: cannot map %zu bytes: %s",
                       of->path, of->size, strerror(errno));
    of->map = map;
    return 0;
}

/* Lists the tensors of a mapped file; *metadata = the keys, if it is a GGUF file. */
static int list_tensors(const struct file *file, struct tensor **list, size_t *count,
                        json_t **metadata, struct err *e)
{
    char *text = NULL;
    size_t n = 0;
    if (gguf_is(file->path) && !*metadata)
        return gguf_parse(file->map, file->size, file->path, list, count, metadata, e);
    int bad = read_header(file, &text, &n, e) ||
              safetensors_header_parse(text, n, file->path, file->map + 8 + n, file->size - 8 - n,
                                       list, count, e);
    free(text);
    return bad ? -1 : 0;
}

/* Adds a file and its tensors. The set owns fd from now on, also after an error. */
static int add_file(struct tensors *set, int fd, const char *path, struct err *e)
{
    MEM_GROW(set->files, set->n_files, set->cap_files);
    struct file *file = &set->files[set->n_files++];
    *file = (struct file){.path = mem_text(path), .fd = fd};
    size_t count;
    struct tensor *list;
    if (map_file(file, e) || list_tensors(file, &list, &count, &set->metadata, e))
        return -1;
    set->list = mem_resize(set->list, set->count + count, sizeof *set->list);
    set->file_of = mem_resize(set->file_of, set->count + count, sizeof *set->file_of);
    for (size_t i = 0; i < count; i++) {
        set->list[set->count] = list[i];
        set->file_of[set->count++] = set->n_files - 1;
    }
    free(list);
    return 0;
}

static int by_name(const void *a, const void *b)
{
    const struct tensor *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

/* The file that holds a tensor of the set. */
static const struct file *file_of(const struct tensors *set, const struct tensor *tensor)
{
    return &set->files[set->file_of[tensor - set->list]];
}

/* Fills set->sorted. -1: two files have a tensor of the same name. */
static int sort_names(struct tensors *set, struct err *e)
{
    set->sorted = mem_alloc(set->count * sizeof *set->sorted);
    for (size_t i = 0; i < set->count; i++)
        set->sorted[i] = &set->list[i];
    if (set->count)
        qsort(set->sorted, set->count, sizeof *set->sorted, by_name);
    for (size_t i = 1; i < set->count; i++)
        if (!strcmp(set->sorted[i - 1]->name, set->sorted[i]->name))
            return err_set(e, EXIT_BAD_DATA, "tensor \"%.200s\" is in two files: %s and %s",
                           set->sorted[i]->name, file_of(set, set->sorted[i - 1])->path,
                           file_of(set, set->sorted[i])->path);
    return 0;
}

static int open_path(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        err_set(e, EXIT_NO_INPUT, "%s: %s", path, strerror(errno));
    return fd;
}

struct tensors *safetensors_open_file(const char *path, struct err *e)
{
    int fd = open_path(path, e);
    if (fd < 0)
        return NULL;
    struct tensors *set = mem_zero(1, sizeof *set);
    if (!add_file(set, fd, path, e) && !sort_names(set, e))
        return set;
    safetensors_close(set);
    return NULL;
}

const json_t *safetensors_metadata(const struct tensors *set)
{
    return set->metadata;
}

/* 1: the name stays inside its folder. */
static int is_shard_name(const char *text, size_t n)
{
    static const char good[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    return n > 0 && n <= SHARD_NAME_MAX && strspn(text, good) == n && strcmp(text, ".") &&
           strcmp(text, "..");
}

/* Opens one shard and adds its tensors. */
static int add_shard(struct tensors *set, const char *folder, const char *name, struct err *e)
{
    char *path = mem_format("%s/%s", folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW), bad = 0;
    if (fd < 0 && errno == ELOOP) {
        if (access(path, F_OK))
            bad = err_set(e, EXIT_BAD_DATA, "%s: link leads nowhere: the download is not complete",
                          path);
        else if (!hub_contains(folder, path))
            bad = err_set(e, EXIT_BAD_DATA, "%s: link leads out of the folder", path);
        else
            fd = open_path(path, e);
    } else if (fd < 0) {
        bad = err_set(e, errno == ENOENT ? EXIT_BAD_DATA : EXIT_NO_INPUT,
                      "%s: shard named by the index: %s", path, strerror(errno));
    }
    bad = bad || fd < 0 || add_file(set, fd, path, e);
    free(path);
    return bad ? -1 : 0;
}

/* The names of the shards as an object {name: null}, in the order of the index. */
static json_t *shard_names(const json_t *map, const char *index, struct err *e)
{
    json_t *names = json_object(), *value;
    const char *tensor;
    json_object_foreach((json_t *)map, tensor, value) {
        const char *name = json_string_value(value);
        if (!name || !is_shard_name(name, json_string_length(value))) {
            err_set(e, EXIT_BAD_DATA,
                    "%s: tensor \"%.200s\": expected a shard name of letters, digits, . _ -, got "
                    "\"%.100s\"", index, tensor, name ? name : "not a string");
            json_decref(names);
            return NULL;
        }
        if (!json_object_get(names, name))
            json_object_set_new(names, name, json_null());
    }
    return names;
}

/* Adds a harmless oddity to the note. */
static void add_note(struct tensors *set, char *text)
{
    char *before = set->note;
    set->note = before ? mem_format("%s; %s", before, text) : mem_text(text);
    free(before);
    free(text);
}

/* Checks that every tensor is in the shard that the index names. A name without a tensor is only
 * noted: if the network needs this tensor, checkpoint_open refuses the model. */
static int check_map(struct tensors *set, const json_t *map, const char *index, struct err *e)
{
    const char *name, *first = NULL;
    size_t lost = 0;
    json_t *value;
    for (size_t i = 0; i < set->count; i++) {
        const char *path = file_of(set, &set->list[i])->path, *file = strrchr(path, '/') + 1;
        const char *said = json_string_value(json_object_get(map, set->list[i].name));
        if (!said || strcmp(said, file))
            return err_set(e, EXIT_BAD_DATA, "%s: tensor \"%.200s\" is in %s, the index says %s",
                           index, set->list[i].name, file, said ? said : "nothing of it");
    }
    json_object_foreach((json_t *)map, name, value) {
        if (!safetensors_find(set, name)) {
            first = first ? first : name;
            lost++;
        }
    }
    if (lost)
        add_note(set, mem_format("%s: %zu named there %s in no shard, the first \"%.200s\" not in "
                                 "%s", index, lost, lost == 1 ? "is" : "are", first,
                                 json_string_value(json_object_get(map, first))));
    return 0;
}

/* Notes a wrong metadata.total_size. It is no error: total_size is a hint for downloads, and some
 * exporters write a wrong value. */
static void note_total(struct tensors *set, const json_t *index, const char *path)
{
    const json_t *said = json_object_get(json_object_get(index, "metadata"), "total_size");
    size_t sum = 0;
    for (size_t i = 0; i < set->count; i++)
        sum += set->list[i].bytes; /* cannot overflow: each tensor is inside a mapped file */
    if (json_is_number(said) && json_number_value(said) == (double)sum)
        return;
    char *got = said ? json_dumps(said, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
    add_note(set, mem_format("%s: metadata: total_size is %.40s, the tensors have %zu bytes; it is "
                             "only a hint, the tensors are used as they are", path,
                             got ? got : "missing", sum));
    free(got);
}

static int load_index(struct tensors *set, const char *folder, const char *path, struct err *e)
{
    json_t *index = json_file(path, INDEX_MAX_BYTES, e), *value;
    const json_t *map = json_object_get(index, "weight_map");
    const char *name;
    if (!index)
        return -1;
    json_t *names = NULL;
    int bad = 0;
    if (!json_is_object(map) || json_object_size(map) == 0)
        bad =
            err_set(e, EXIT_BAD_DATA, "%s: weight_map: expected an object, tensor to shard", path);
    bad = bad || !(names = shard_names(map, path, e)) || safetensors_series(names, folder, path, e);
    if (!bad)
        json_object_foreach(names, name, value)
            bad = bad || add_shard(set, folder, name, e);
    bad = bad || sort_names(set, e) || check_map(set, map, path, e);
    if (!bad)
        note_total(set, index, path);
    json_decref(names);
    json_decref(index);
    return bad ? -1 : 0;
}

/* Sets *e: why a folder has no checkpoint. */
static void say_none(const char *folder, struct err *e)
{
    const char *found = "";
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && (entry = readdir(open));) {
        size_t n = strlen(entry->d_name);
        unsigned part, parts;
        size_t prefix;
        if (n > 5 && !strcmp(entry->d_name + n - 5, ".gguf"))
            found = " (for a GGUF file, give the path of the file)";
        else if (safetensors_series_parse(entry->d_name, &prefix, &part, &parts))
            found = " (there are shards without their index: download it too)";
        else if (!*found && !strncmp(entry->d_name, "pytorch_model", 13))
            found = " (PyTorch files are not read; run there: " SAFETENSORS_FROM_PYTORCH ")";
    }
    err_set(e, EXIT_NO_INPUT, "%s: no model.safetensors and no model.safetensors.index.json%s%s",
            folder, found, open ? "" : " (no such folder)");
    if (open)
        closedir(open);
}

struct tensors *safetensors_open_folder(const char *folder, struct err *e)
{
    char *single = mem_format("%s/model.safetensors", folder);
    char *index = mem_format("%s/model.safetensors.index.json", folder);
    struct stat st;
    int has_single = !lstat(single, &st), has_index = !lstat(index, &st);
    struct tensors *set = NULL;
    if (has_single && has_index) {
        err_set(e, EXIT_BAD_DATA, "%s: holds model.safetensors and an index of shards: remove one",
                folder);
    } else if (has_single) {
        set = safetensors_open_file(single, e);
    } else if (has_index) {
        set = mem_zero(1, sizeof *set);
        if (load_index(set, folder, index, e)) {
            safetensors_close(set);
            set = NULL;
        }
    } else {
        say_none(folder, e);
    }
    free(single);
    free(index);
    return set;
}

size_t safetensors_count(const struct tensors *set)
{
    return set->count;
}

const struct tensor *safetensors_at(const struct tensors *set, size_t i)
{
    return &set->list[i];
}

const struct tensor *safetensors_find(const struct tensors *set, const char *name)
{
    struct tensor key = {.name = (char *)name};
    const struct tensor *k = &key;
    if (!set->count)
        return NULL;
    const struct tensor **hit = bsearch(&k, set->sorted, set->count, sizeof *set->sorted, by_name);
    return hit ? *hit : NULL;
}

const char *safetensors_note(const struct tensors *set)
{
    return set->note;
}

size_t safetensors_files(const struct tensors *set)
{
    return set->n_files;
}

const char *safetensors_file(const struct tensors *set, size_t i)
{
    return set->files[i].path;
}

int safetensors_descriptor(const struct tensors *set, size_t i, size_t *bytes)
{
    *bytes = set->files[i].size;
    return set->files[i].fd;
}

size_t safetensors_place(const struct tensors *set, const struct tensor *tensor)
{
    size_t before = 0;
    for (size_t i = 0; i < set->n_files; before += set->files[i++].size) {
        const size_t at = (uintptr_t)tensor->data - (uintptr_t)set->files[i].map;
        if (at < set->files[i].size)
            return before + at;
    }
    return before;
}

int safetensors_unchanged(const struct tensors *set, struct err *e)
{
    for (size_t i = 0; i < set->n_files; i++) {
        const struct file *file = &set->files[i];
        struct stat st;
        if (fstat(file->fd, &st) || (size_t)st.st_size != file->size ||
            st.st_mtim.tv_sec != file->mtime.tv_sec || st.st_mtim.tv_nsec != file->mtime.tv_nsec)
            return err_set(e, EXIT_IO, "%s: changed while reading", file->path);
    }
    return 0;
}

void safetensors_close(struct tensors *set)
{
    if (!set)
        return;
    for (size_t i = 0; i < set->n_files; i++) {
        if (set->files[i].map)
            munmap(set->files[i].map, set->files[i].size);
        close(set->files[i].fd);
        free(set->files[i].path);
    }
    free(set->files);
    safetensors_header_free(set->list, set->count);
    json_decref(set->metadata);
    free(set->file_of);
    free(set->sorted);
    free(set->note);
    free(set);
}
