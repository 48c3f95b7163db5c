/* Lists whose head is a link too: adding, removing and walking need no special case. */
#ifndef BASE_RING_H
#define BASE_RING_H

#include <stdbool.h>
#include <stddef.h>

struct ring {
    struct ring *prev, *next;
};

static inline void ring_init(struct ring *ring)
{
    ring->prev = ring->next = ring;
}

static inline bool ring_empty(const struct ring *head)
{
    return head->next == head;
}

static inline void ring_remove(struct ring *ring)
{
    ring->prev->next = ring->next;
    ring->next->prev = ring->prev;
    ring_init(ring);
}

static inline void ring_append(struct ring *head, struct ring *ring)
{
    ring->prev = head->prev;
    ring->next = head;
    head->prev->next = ring;
    head->prev = ring;
}

static inline void ring_prepend(struct ring *head, struct ring *ring)
{
    ring_append(head->next, ring);
}

#define ring_owner(ring, type, member) ((type *)(void *)((char *)(ring)-offsetof(type, member)))

/* Walks; the current one may be removed. */
#define ring_each(type, item, member, head)                                                                  \
    for (type *item = ring_owner((head)->next, type, member),                                                \
              *item##_next = ring_owner(item->member.next, type, member);                                    \
         &item->member != (head);                                                                            \
         item = item##_next, item##_next = ring_owner(item->member.next, type, member))

#endif
