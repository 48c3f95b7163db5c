/* Things that are due, the earliest first. A place in the heap is a member of the thing itself, so that adding,
 * moving and removing allocate nothing but the heap's own array. Which clock the moments belong to is for the owner
 * to know. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAP_NEVER INT64_MAX

/* Zeroed: in no heap. */
struct heap_place {
    int64_t due;
    size_t number; /* from 1; 0: in none */
};

/* Zeroed: empty. */
struct heap {
    struct heap_place **places;
    size_t count, room;
};

void heap_free(struct heap *heap);
/* Adds it, or moves it; HEAP_NEVER takes it out. */
void heap_set(struct heap *heap, struct heap_place *place, int64_t due);
/* One that is in no heap stays so. */
void heap_remove(struct heap *heap, struct heap_place *place);
/* NULL: the heap is empty. */
struct heap_place *heap_first(const struct heap *heap);
/* When the first is due, or HEAP_NEVER. */
int64_t heap_due(const struct heap *heap);

#endif
