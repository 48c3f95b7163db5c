/* A binary heap whose members know where they stand; see heap.h. */
#include "base/heap.h"

#include <stdlib.h>

#include "base/fail.h"

#define ROOM_MIN 64

void heap_free(struct heap *heap)
{
    free(heap->places);
    *heap = (struct heap){0};
}

static void put(struct heap *heap, size_t number, struct heap_place *place)
{
    heap->places[number - 1] = place;
    place->number = number;
}

/* Moves it up or down to where it belongs. */
static void settle(struct heap *heap, struct heap_place *place)
{
    size_t number = place->number;
    for (; number > 1 && heap->places[number / 2 - 1]->due > place->due; number /= 2)
        put(heap, number, heap->places[number / 2 - 1]);
    for (;;) {
        size_t child = 2 * number;
        if (child > heap->count) break;
        if (child < heap->count && heap->places[child]->due < heap->places[child - 1]->due) child++;
        if (heap->places[child - 1]->due >= place->due) break;
        put(heap, number, heap->places[child - 1]);
        number = child;
    }
    put(heap, number, place);
}

void heap_remove(struct heap *heap, struct heap_place *place)
{
    size_t number = place->number;
    if (!number) return;
    ensure(number <= heap->count && heap->places[number - 1] == place);
    struct heap_place *last = heap->places[--heap->count];
    place->number = 0;
    if (last == place) return;
    put(heap, number, last);
    settle(heap, last);
}

void heap_set(struct heap *heap, struct heap_place *place, int64_t due)
{
    if (due == HEAP_NEVER) {
        heap_remove(heap, place);
        return;
    }
    if (!place->number) {
        if (heap->count == heap->room) {
            heap->room = heap->room ? heap->room * 2 : ROOM_MIN;
            heap->places = must_realloc(heap->places, heap->room * sizeof(struct heap_place *));
        }
        put(heap, ++heap->count, place);
    }
    place->due = due;
    settle(heap, place);
}

struct heap_place *heap_first(const struct heap *heap)
{
    return heap->count ? heap->places[0] : NULL;
}

int64_t heap_due(const struct heap *heap)
{
    return heap->count ? heap->places[0]->due : HEAP_NEVER;
}
