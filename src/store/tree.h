/* An ordered tree of keys to values that is never changed where anyone else can see it.
 *
 * A tree is a pointer to its root, NULL when empty. Nodes and values are counted; a change takes the
 * caller's reference to a tree and answers a new one, copying only the nodes on its path that somebody else
 * holds too. So holding a reference is a snapshot, in constant time, and readers need no lock.
 *
 * Thread rules: a reference may be passed between threads; whoever holds one may read; nobody may change a
 * tree to which another thread could still gain a reference. memory.c keeps that by changing a private
 * reference and publishing it. */
#ifndef STORE_TREE_H
#define STORE_TREE_H

#include "base/random.h"
#include "store/store.h"

struct tree_node;

struct tree_node *tree_hold(struct tree_node *tree); /* NULL is fine */
void tree_release(struct tree_node *tree);

struct tree_node *tree_put(struct tree_node *tree, struct slice key, struct slice value,
                           struct random *random);
struct tree_node *tree_delete(struct tree_node *tree, struct slice key);
struct tree_node *tree_delete_range(struct tree_node *tree, struct slice from, struct slice to);

/* The slice is valid as long as the tree is held. */
bool tree_find(const struct tree_node *tree, struct slice key, struct slice *value);
/* Visits from <= key < to, an empty `to` being the end. Answers false when the visitor stopped. */
bool tree_scan(const struct tree_node *tree, struct slice from, struct slice to, store_visitor visitor,
               void *context);
bool tree_scan_backwards(const struct tree_node *tree, struct slice from, struct slice to,
                         store_visitor visitor, void *context);

uint64_t tree_count(const struct tree_node *tree);
uint64_t tree_bytes(const struct tree_node *tree); /* memory of the whole tree, shared parts included */

#endif
