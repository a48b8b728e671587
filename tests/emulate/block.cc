/* block.cc - the threads of a block: which one runs, which ones wait for each other, and the report
 * when they wait for ever.
 *
 * Invariant: a thread is running (self), can run or is stopped (a bit of its warp), is in exactly
 * one meeting, or has returned. A meeting is empty or waits for a thread; the thread that completes
 * it dissolves it. A thread has a fiber from its first turn until it returns. */
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

namespace emulate {

struct thread *self;
static struct fiber host;
static std::deque<struct fiber> fibers;
static std::vector<struct fiber *> idle; /* fibers without a thread */
static std::unique_ptr<struct block> brought_up; /* a block of the next kernel, or none */
static std::vector<std::unique_ptr<struct block>> spare; /* ended blocks: their memory is reused */
static uint64_t lot;
static void live();

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

/* 64 random bits. Source: Steele, Lea, Flood 2014 (SplitMix). */
static uint64_t bits()
{
    uint64_t z = lot += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* A random number below n. */
static size_t draw(size_t n)
{
    return static_cast<size_t>(static_cast<unsigned __int128>(bits()) * n >> 64);
}

/* ---- the choice of the next thread ---- */

/* The first bit that is set, from place `from` on, then from 0. The set is not empty. */
static unsigned first_of(uint32_t set, unsigned from)
{
    from %= LANES;
    uint32_t turned = set >> from | set << (-from % LANES);
    return (static_cast<unsigned>(__builtin_ctz(turned)) + from) % LANES;
}

static uint32_t bit_of(const struct thread *t)
{
    return 1u << t->rank % LANES;
}

static struct warp *warp_of(const struct thread *t)
{
    return &t->block->warps[t->rank / LANES];
}

static void can_run(struct warp *w, uint32_t lanes)
{
    w->runnable |= lanes;
    if (lanes)
        w->block->ready |= 1u << w->rank;
}

/* Gives the next turns to a random warp with threads that can run. */
static void change_warps(struct block *b)
{
    if (b->ready)
        b->turn = first_of(b->ready, static_cast<unsigned>(bits()));
}

/* A random thread that can run: mostly of the warp that had the last turn; sometimes, or if that
 * warp has none, of another. One warp is then far ahead of the others, which finds code that relies
 * on warps being close, and few stacks are in use. */
static struct thread *next_of(struct block *b)
{
    enum { CHANGES = 64 }; /* one turn of 64 */
    uint64_t drawn = bits();
    if (!b->warps[b->turn].runnable || !(drawn >> 32 & (CHANGES - 1)))
        change_warps(b);
    struct warp *w = &b->warps[b->turn];
    unsigned lane = first_of(w->runnable, static_cast<unsigned>(drawn));
    w->runnable &= ~(1u << lane);
    if (!w->runnable)
        b->ready &= ~(1u << b->turn);
    return &b->threads[b->turn * LANES + lane];
}

static struct fiber *idle_fiber()
{
    if (idle.empty())
        fiber_make(idle.emplace_back(&fibers.emplace_back()), live);
    struct fiber *f = idle.back();
    idle.pop_back();
    return f;
}

/* Switches from the running fiber to a thread that can run, or to the outside if none can. A new
 * thread gets the fiber that became idle last; a thread that just returned hands on its own. */
static void give_way(struct block *b, struct fiber *from)
{
    struct fiber *to = b->outside;
    if (b->ready) {
        self = next_of(b);
        if (!self->fiber)
            self->fiber = idle_fiber();
        to = self->fiber;
    }
    if (to != from)
        fiber_switch(from, to);
}

/* Runs the threads of a block until none can run. The host calls it or, for a block that is brought
 * up, a thread of another block. */
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
    can_run(warp_of(self), bit_of(self));
    change_warps(self->block);
    give_way(self->block, self->fiber);
}

/* The loop of a fiber: runs one thread after the other. */
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
        if (++me->block->returned == me->block->threads.size() && me->block->n_bulk)
            fail("%u bulk copies are on their way when the block ends", me->block->n_bulk);
        if (!FIBERS_ARE_THREADS)
            idle.push_back(me->fiber);
        give_way(me->block, me->fiber);
    }
}

/* ---- meetings ---- */

static bool same(const char *a, const char *b)
{
    return a == b || !strcmp(a, b);
}

/* self arrives at m, where the lanes `here` already are. */
static void enter(struct meeting *m, uint32_t mask, const char *word, place at)
{
    if (!m->here) {
        m->word = word;
        m->at = at;
        m->mask = mask;
    } else if (m->at.line != at.line || !same(m->word, word) || !same(m->at.file, at.file))
        fail("is at %s of %s:%d, where others wait at %s of %s:%d", word, at.file, at.line, m->word,
             m->at.file, m->at.line);
}

void barrier(place at)
{
    struct block *b = self->block;
    struct meeting *m = &b->of_all;
    sanitizer_tell(m);
    enter(m, 0, "__syncthreads", at);
    if (++m->here == b->threads.size()) {
        m->here = 0;
        for (struct warp &w : b->warps)
            can_run(&w, w.lanes);
        change_warps(b);
    }
    give_way(b, self->fiber);
    sanitizer_learn(m);
}

/* The meeting of these lanes: one where some of them wait, or a new one. Lanes of other masks may
 * wait at other meetings at the same time. */
static struct meeting *meeting_of(struct warp *w, uint32_t mask)
{
    for (uint32_t open = w->open; open; open &= open - 1) {
        struct meeting *m = &w->meetings[__builtin_ctz(open)];
        if (m->mask == mask)
            return m;
    }
    return &w->meetings[__builtin_ctz(~w->open)]; /* every open meeting has a lane of its own, so
                                                   * one is free */
}

void meet(uint32_t mask, const char *word, place at, void *mine, meeting_work *work)
{
    struct warp *w = warp_of(self);
    uint32_t me = bit_of(self);
    if (!(mask & me))
        fail("is not in the mask %08x of its own %s, %s:%d", mask, word, at.file, at.line);
    struct meeting *m = meeting_of(w, mask);
    uint32_t number = 1u << (m - w->meetings);
    enter(m, mask, word, at);
    w->open |= number;
    w->brings[self->rank % LANES] = mine;
    if (!work) /* __syncwarp; the other operations order no memory */
        sanitizer_tell(m);
    m->here |= me;
    if (m->here == mask) {
        if (work)
            work(w->brings, mask);
        m->here = 0;
        w->open &= ~number;
        can_run(w, mask);
    }
    give_way(self->block, self->fiber);
    if (!work)
        sanitizer_learn(m);
}

/* No thread can run, and not all have returned. */
static void explain(const struct block &b)
{
    std::map<std::string, unsigned> waiting;
    auto count = [&waiting](const struct meeting &m, unsigned here) {
        if (here)
            waiting[std::string(m.word) + " of " + m.at.file + ":" + std::to_string(m.at.line)] +=
                here;
    };
    count(b.of_all, b.of_all.here);
    for (const struct warp &w : b.warps)
        for (const struct meeting &m : w.meetings)
            count(m, static_cast<unsigned>(__builtin_popcount(m.here)));
    std::string text;
    for (const auto &w : waiting)
        text += "; " + std::to_string(w.second) + " wait for ever at " + w.first;
    fail("block (%u %u %u) of %zu threads: %zu have returned%s", b.index.x, b.index.y, b.index.z,
         b.threads.size(), b.returned, text.c_str());
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

void copy_later(void *to, const void *from, unsigned bytes)
{
    if (from)
        sanitizer_reads(from, bytes);
    self->copies.push_back({to, from, bytes, self->groups});
}

void copies_finish(unsigned groups_left)
{
    auto open = [groups_left](const copy &c) { return c.group + groups_left >= self->groups; };
    auto end = std::find_if(self->copies.begin(), self->copies.end(), open);
    for (auto c = self->copies.begin(); c != end; ++c) {
        sanitizer_writes(c->to, c->bytes);
        if (c->from)
            memcpy(c->to, c->from, c->bytes);
        else
            memset(c->to, 0, c->bytes);
    }
    self->copies.erase(self->copies.begin(), end);
}

/* ---- grids ---- */

/* Sets the members that do not change while a block is used for blocks of the same size. */
static void lay_out(struct block *b, dim3 dim)
{
    size_t n = static_cast<size_t>(dim.x) * dim.y * dim.z;
    b->size = dim;
    b->threads.resize(n);
    b->warps.assign((n + LANES - 1) / LANES, {});
    for (unsigned i = 0; i < n; i++) {
        struct thread *t = &b->threads[i];
        t->block = b;
        t->rank = i;
        t->index = {i % dim.x, i / dim.x % dim.y, i / dim.x / dim.y};
        b->warps[i / LANES].lanes |= bit_of(t);
    }
    for (unsigned i = 0; i < b->warps.size(); i++) {
        b->warps[i].block = b;
        b->warps[i].rank = i;
    }
}

static void make_threads(struct block *b)
{
    dim3 dim = b->kernel->block;
    if (b->threads.empty() || dim.x != b->size.x || dim.y != b->size.y || dim.z != b->size.z)
        lay_out(b, dim);
    b->n_bulk = 0;
    for (struct thread &t : b->threads) {
        t.fiber = nullptr;
        t.has_inputs = t.lets_next_start = false;
        t.groups = 0;
        t.copies.clear();
    }
    for (struct warp &w : b->warps)
        can_run(&w, w.lanes);
    change_warps(b);
}

/* Shared memory of a block, exactly as large as the kernel asked for. */
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
    b->returned = b->letting = 0;
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
    if (self->block->early) {
        warp_of(self)->stopped |= bit_of(self);
        give_way(self->block, self->fiber);
    }
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
    for (struct warp &w : b->warps) {
        can_run(&w, w.stopped);
        w.stopped = 0;
    }
    change_warps(b.get());
    go_on(b.get());
    sanitizer_learn(&b->ends);
    if (b->returned < b->threads.size())
        explain(*b);
    if (FIBERS_ARE_THREADS)
        for (const struct thread &t : b->threads)
            idle.push_back(t.fiber);
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
