/* block.cc - the threads of a block: who runs, who waits for whom, and what is said when they wait
 * for ever.
 *
 * Invariant: a thread is running (self), in block.runnable or block.stopped, in exactly one
 * meeting, or has returned. A meeting is empty or waits for somebody: who completes it dissolves
 * it.
 */
#include "tests/emulate/block.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <numeric>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string>
#include <string.h>

#include "tests/emulate/fiber.h"
#include "tests/emulate/sanitizers.h"

namespace emulate {

struct thread *self;
static struct fiber host;
static std::deque<struct fiber> fibers;
static std::vector<struct fiber *> idle; /* fibers that have no thread to run */
static std::unique_ptr<struct block> brought_up; /* a block of the next kernel, or none */
static std::vector<std::unique_ptr<struct block>> spare; /* ended: their memory is used again */
static uint64_t lot;

void fail(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fputs("emulate: ", stderr);
    if (self)
        fprintf(stderr, "block (%u %u %u) thread (%u %u %u): ", self->block->index.x,
                self->block->index.y, self->block->index.z, self->index.x, self->index.y,
                self->index.z);
    vfprintf(stderr, format, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}

double setting(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return text && *text ? strtod(text, nullptr) : otherwise;
}

/* A number below n. Source: Steele, Lea, Flood 2014 (SplitMix). */
static size_t draw(size_t n)
{
    uint64_t z = lot += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return static_cast<size_t>(static_cast<unsigned __int128>(z ^ z >> 31) * n >> 64);
}

/* ---- whose turn it is ---- */

/* Leaves the fiber that runs for a thread drawn by lot, or for the outside when none can run. */
static void give_way(struct block *b, struct fiber *from)
{
    struct fiber *to = b->outside;
    if (!b->runnable.empty()) {
        std::swap(b->runnable[draw(b->runnable.size())], b->runnable.back());
        self = b->runnable.back();
        b->runnable.pop_back();
        to = self->fiber;
    }
    if (to != from)
        fiber_switch(from, to);
}

/* Lets the threads of a block run until none can. Called by the host or, for a block that is
 * brought up, by a thread of another one. */
static void go_on(struct block *b)
{
    struct thread *caller = self;
    b->outside = caller ? caller->fiber : &host;
    sanitizer_tell(&b->begins);
    give_way(b, b->outside);
    self = caller;
}

void pause()
{
    self->block->runnable.push_back(self);
    give_way(self->block, self->fiber);
}

/* What a fiber does: one thread after the other. */
static void live()
{
    for (;;) {
        struct thread *me = self;
        sanitizer_learn(&me->block->begins);
        me->block->kernel->body();
        if (!me->has_inputs)
            fail("has returned without wait_for_inputs()");
        let_next_start();
        sanitizer_tell(&me->block->ends);
        me->returned = true;
        give_way(me->block, me->fiber);
    }
}

/* ---- meetings ---- */

/* self is in m; `all` of them make it complete. */
static void wait_in(struct meeting *m, size_t all, void (*work)(void *brought[32]))
{
    struct thread *me = self;
    me->waits_in = m;
    if (m->n < all) {
        give_way(me->block, me->fiber);
        return;
    }
    if (work) {
        void *brought[32] = {};
        for (struct thread *t = m->here; t; t = t->before)
            brought[t->rank % 32] = t->brings;
        work(brought);
    }
    for (struct thread *t = m->here; t; t = t->before) {
        t->waits_in = nullptr;
        me->block->runnable.push_back(t);
    }
    m->here = nullptr;
    m->n = 0;
    give_way(me->block, me->fiber);
}

static bool same(const char *a, const char *b)
{
    return a == b || !strcmp(a, b);
}

static void enter(struct meeting *m, uint32_t mask, const char *word, place at)
{
    if (!m->here) {
        m->word = word;
        m->at = at;
        m->mask = mask;
    } else if (m->at.line != at.line || !same(m->word, word) || !same(m->at.file, at.file))
        fail("is at %s of %s:%d, where others wait at %s of %s:%d", word, at.file, at.line, m->word,
             m->at.file, m->at.line);
    self->before = m->here;
    m->here = self;
    m->n++;
}

void barrier(place at)
{
    struct meeting *m = &self->block->of_all;
    sanitizer_tell(m);
    enter(m, 0, "__syncthreads", at);
    wait_in(m, self->block->threads.size(), nullptr);
    sanitizer_learn(m);
}

/* The meeting of these lanes: the one that some of them are at, or a new one. Lanes of other masks
 * may be at others meanwhile. */
static struct meeting *meeting_of(unsigned warp, uint32_t mask)
{
    struct meeting *first = &self->block->of_warp[warp * 32], *empty = nullptr;
    for (struct meeting *m = first; m < first + 32; m++) {
        if (m->here && m->mask == mask)
            return m;
        if (!m->here && !empty)
            empty = m; /* the first: there the others look first, too */
    }
    return empty; /* there is one: each of the others keeps a lane, and this one is free */
}

void meet(uint32_t mask, const char *word, place at, void *mine, void (*work)(void *brought[32]))
{
    if (!(mask >> self->rank % 32 & 1))
        fail("is not in the mask %08x of its own %s, %s:%d", mask, word, at.file, at.line);
    struct meeting *m = meeting_of(self->rank / 32, mask);
    enter(m, mask, word, at);
    self->brings = mine;
    if (!work) /* __syncwarp: the other words order no memory */
        sanitizer_tell(m);
    wait_in(m, static_cast<size_t>(__builtin_popcount(mask)), work);
    if (!work)
        sanitizer_learn(m);
}

/* Nobody can run, and not all have returned. */
static void explain(const struct block &b)
{
    std::map<std::string, unsigned> waiting;
    unsigned returned = 0;
    for (const struct thread &t : b.threads) {
        returned += t.returned;
        if (t.waits_in)
            waiting[std::string(t.waits_in->word) + " of " + t.waits_in->at.file + ":" +
                    std::to_string(t.waits_in->at.line)]++;
    }
    std::string text;
    for (const auto &w : waiting)
        text += "; " + std::to_string(w.second) + " wait for ever at " + w.first;
    fail("block (%u %u %u) of %zu threads: %u have returned%s", b.index.x, b.index.y, b.index.z,
         b.threads.size(), returned, text.c_str());
}

/* ---- shared memory, and copies into it ---- */

void check_aligned(const void *p, size_t align, const char *word)
{
    if (reinterpret_cast<uintptr_t>(p) % align)
        fail("%s: %p is no multiple of %zu", word, p, align);
}

void check_shared(const void *p, size_t bytes, size_t align, const char *word)
{
    uintptr_t first = reinterpret_cast<uintptr_t>(self->block->shared);
    uintptr_t at = reinterpret_cast<uintptr_t>(p);
    if (at < first || at + bytes > first + self->block->kernel->shared)
        fail("%s: %p is not in the %zu bytes of shared memory", word, p,
             self->block->kernel->shared);
    check_aligned(p, align, word);
}

void copy_later(void *to, const void *from)
{
    if (from)
        sanitizer_reads(from, 16);
    self->copies.push_back({to, from, self->groups});
}

void copies_finish(unsigned groups_left)
{
    auto open = [groups_left](const copy &c) { return c.group + groups_left >= self->groups; };
    auto end = std::find_if(self->copies.begin(), self->copies.end(), open);
    for (auto c = self->copies.begin(); c != end; ++c) {
        sanitizer_writes(c->to, 16);
        if (c->from)
            memcpy(c->to, c->from, 16);
        else
            memset(c->to, 0, 16);
    }
    self->copies.erase(self->copies.begin(), end);
}

/* ---- grids ---- */

static void make_threads(struct block *b)
{
    dim3 dim = b->kernel->block;
    size_t n = static_cast<size_t>(dim.x) * dim.y * dim.z;
    b->threads.resize(n);
    b->of_warp.resize((n + 31) / 32 * 32);
    b->runnable.reserve(n);
    b->stopped.reserve(n);
    for (unsigned i = 0; i < n; i++) {
        struct thread *t = &b->threads[i];
        if (idle.empty())
            fiber_make(idle.emplace_back(&fibers.emplace_back()), live);
        std::vector<struct copy> copies = std::move(t->copies);
        copies.clear();
        *t = {};
        t->copies = std::move(copies);
        t->block = b;
        t->fiber = idle.back();
        t->rank = i;
        t->index = {i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
        idle.pop_back();
        b->runnable.push_back(t);
    }
}

/* Shared memory of a block, as large as the kernel asked for and no larger. */
static void make_shared(struct block *b, size_t bytes)
{
    if (!b->shared || b->shared_bytes != bytes) {
        void *shared;
        free(b->shared);
        if (posix_memalign(&shared, 128, bytes))
            fail("no memory for %zu bytes of shared memory", bytes);
        b->shared = static_cast<unsigned char *>(shared);
        b->shared_bytes = bytes;
    }
    memset(b->shared, 0xff, bytes); /* a NaN in every format, -1 as an index */
}

static std::unique_ptr<struct block> make_block(const struct kernel &k, size_t i)
{
    if (spare.empty())
        spare.push_back(std::make_unique<struct block>());
    std::unique_ptr<struct block> b = std::move(spare.back());
    spare.pop_back();
    b->kernel = &k;
    b->index = {static_cast<unsigned>(i % k.grid.x), static_cast<unsigned>(i / k.grid.x % k.grid.y),
                static_cast<unsigned>(i / k.grid.x / k.grid.y)};
    b->early = false;
    b->letting = 0;
    b->next = nullptr;
    make_shared(b.get(), k.shared);
    make_threads(b.get());
    return b;
}

static size_t blocks_of(const struct kernel &k)
{
    return static_cast<size_t>(k.grid.x) * k.grid.y * k.grid.z;
}

static void bring_up(const struct kernel &k)
{
    brought_up = make_block(k, draw(blocks_of(k)));
    brought_up->early = true;
    go_on(brought_up.get());
}

void wait_for_inputs()
{
    self->has_inputs = true;
    (self->block->early ? self->block->stopped : self->block->runnable).push_back(self);
    give_way(self->block, self->fiber);
    sanitizer_learn(&self->block->begins);
}

void let_next_start()
{
    struct block *b = self->block;
    if (self->lets_next_start)
        return;
    self->lets_next_start = true;
    if (++b->letting == b->threads.size() && b->next)
        bring_up(*b->next);
}

/* Runs a block to its end, whether it was brought up or is new. */
static void finish(std::unique_ptr<struct block> b, const struct kernel *next)
{
    b->next = next;
    if (next && b->letting == b->threads.size())
        bring_up(*next);
    b->early = false;
    b->runnable.insert(b->runnable.end(), b->stopped.begin(), b->stopped.end());
    b->stopped.clear();
    go_on(b.get());
    sanitizer_learn(&b->ends);
    for (const struct thread &t : b->threads) {
        if (!t.returned)
            explain(*b);
        idle.push_back(t.fiber);
    }
    spare.push_back(std::move(b));
}

void run(const struct kernel &k, const struct kernel *next)
{
    std::vector<size_t> order(blocks_of(k));
    std::iota(order.begin(), order.end(), 0);
    lot ^= static_cast<uint64_t>(setting("EMULATE_SEED", 1)) << 32;
    for (size_t n = order.size(); n > 1; n--)
        std::swap(order[n - 1], order[draw(n)]);
    host = {};
    std::unique_ptr<struct block> first = std::move(brought_up);
    if (first) {
        const uint3 &at = first->index;
        size_t i = (static_cast<size_t>(at.z) * k.grid.y + at.y) * k.grid.x + at.x;
        order.erase(std::find(order.begin(), order.end(), i));
        finish(std::move(first), order.empty() ? next : nullptr);
    }
    for (size_t i : order)
        finish(make_block(k, i), i == order.back() ? next : nullptr);
}

} // namespace emulate
