/* shelf.c - finds the figures of a report and puts them on a page; see shelf.h. A figure whose
 * caption begins with "No data" is left out. A link to a data file or script is put only if the
 * file exists. */
#include "lib/report/shelf.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/base/file.h"
#include "lib/base/mem.h"
#include "lib/figure/figure.h"
#include "lib/report/sections.h"

enum { SVG_MAX = 4 << 20, CAPTION_MAX = 1 << 16 };

static int ends_in(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && !strcmp(text + n - m, end);
}

static int is_drawing(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && ends_in(entry->d_name, ".svg") &&
           !ends_in(entry->d_name, "-narrow.svg");
}

/* The place of a figure in the report, by its type; unknown types come last. */
static size_t place_of(const char *name)
{
    size_t i = 0;
    for (; figure_types[i].name; i++)
        if (!strncmp(name, figure_types[i].name, strlen(figure_types[i].name)))
            break;
    return i;
}

static int by_place(const struct dirent **a, const struct dirent **b)
{
    size_t x = place_of((*a)->d_name), y = place_of((*b)->d_name);
    return x != y ? (x < y ? -1 : 1) : strcmp((*a)->d_name, (*b)->d_name);
}

/* The content of the file folder/NAME + ending, without the last line break; empty: no such
 * file. */
static struct buf text_of(const struct shelf *shelf, const char *name, const char *ending)
{
    char *path = mem_format("%s/%s%s", shelf->folder, name, ending);
    struct buf text = {0};
    struct err ignored = {0};
    if (access(path, R_OK) || file_read(path, SVG_MAX, &text, &ignored))
        buf_free(&text);
    else if (text.len && text.data[text.len - 1] == '\n')
        text.data[--text.len] = 0;
    free(path);
    return text;
}

int shelf_open(struct shelf *shelf, const char *folder, const char *output, struct err *e)
{
    struct dirent **list = NULL;
    *shelf = (struct shelf){folder, output, NULL, 0};
    if (!folder)
        return 0;
    int n = scandir(folder, &list, is_drawing, by_place);
    if (n < 0)
        return err_set(e, EXIT_NO_INPUT, "--figures %s: cannot be read", folder);
    shelf->names = mem_zero((size_t)n + 1, sizeof *shelf->names);
    for (int i = 0; i < n; i++) {
        char *name = mem_format("%.*s", (int)strlen(list[i]->d_name) - 4, list[i]->d_name);
        struct buf about = text_of(shelf, name, ".txt");
        if (about.data && !strncmp(about.data, "No data", strlen("No data")))
            free(name);
        else
            shelf->names[shelf->n++] = name;
        buf_free(&about);
        free(list[i]);
    }
    free(list);
    return 0;
}

void shelf_close(struct shelf *shelf)
{
    for (size_t i = 0; i < shelf->n; i++)
        free(shelf->names[i]);
    free(shelf->names);
    *shelf = (struct shelf){0};
}

int shelf_has(const struct shelf *shelf, const char *name)
{
    for (size_t i = 0; i < shelf->n; i++)
        if (!strcmp(shelf->names[i], name))
            return 1;
    return 0;
}

/* The link to the file folder/NAME + ending; NULL: no such file. The caller frees. */
static char *link_of(const struct shelf *shelf, const char *name, const char *ending)
{
    char *path = mem_format("%s/%s%s", shelf->folder, name, ending);
    char *link = access(path, R_OK) ? NULL : sections_link(shelf->output, path);
    free(path);
    return link;
}

/* The first sentence of a caption, without its period; without a caption the name. The caller
 * frees. */
static char *sentence_of(const char *caption, const char *name)
{
    const char *end = caption ? strstr(caption, ". ") : NULL;
    return !caption || !*caption ? mem_text(name)
           : end                 ? mem_format("%.*s", (int)(end - caption), caption)
                                 : mem_text(caption);
}

/* is_inside 1: the page includes the drawing; 0: it shows the file. */
static void put(struct page *page, const struct shelf *shelf, const char *name, const char *title,
                int is_lead, int is_inside)
{
    struct buf svg = {0}, narrow = {0}, about = text_of(shelf, name, ".txt");
    char *first = sentence_of(about.data, name);
    char *link = link_of(shelf, name, ".svg"), *data = link_of(shelf, name, ".tsv");
    char *script = link_of(shelf, name, ".gp");
    if (is_inside) {
        svg = text_of(shelf, name, ".svg");
        narrow = text_of(shelf, name, "-narrow.svg");
    }
    const struct page_picture picture = {title ? title : first, about.data, svg.data,
                                         narrow.data, link ? link : name, data, script, is_lead};
    page_figure(page, &picture);
    char *const owned[] = {first, link, data, script};
    for (size_t i = 0; i < sizeof owned / sizeof *owned; i++)
        free(owned[i]);
    buf_free(&svg);
    buf_free(&narrow);
    buf_free(&about);
}

void shelf_put(struct page *page, const struct shelf *shelf, const char *name, const char *title,
               int is_lead)
{
    put(page, shelf, name, title, is_lead, 1);
}

void shelf_link(struct page *page, const struct shelf *shelf, const char *name)
{
    put(page, shelf, name, NULL, 0, 0);
}
