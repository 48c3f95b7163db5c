/* The tree is a treap: ordered by key, and a heap by priorities drawn at random when a key comes in, which
 * keeps it balanced without any bookkeeping (depth about 2 log2 n for any order of inserts) and makes cutting
 * out a range as cheap as one insert. Binary rather than wide nodes, because copying a node must count every
 * child that the copy shares: two here, dozens in a B-tree, each a cache miss.
 *
 * Invariants:
 *  M1. In-order keys strictly increase; a parent's priority is at least its children's.
 *  M2. A node with more than one reference is never changed, and neither is anything below it.
 *  M3. `count` and `bytes` of a node are the sums over its subtree.
 *
 * Recursion goes as deep as the tree; priorities come from the system's randomness, so no client can choose
 * keys that make it deep. */
#include "store/tree.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/fail.h"

struct held_value {
    _Atomic uint32_t references;
    size_t len;
    char bytes[];
};

struct tree_node {
    _Atomic uint32_t references;
    uint32_t priority;
    struct tree_node *left, *right;
    struct held_value *value;
    uint64_t count, bytes;
    uint32_t key_len;
    char key[]; /* here, not behind a pointer: a search touches one place per level */
};

/* ---- references ---- */

static void count_up(_Atomic uint32_t *references)
{
    atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

/* True when that was the last reference: everything its former holders did happened before. */
static bool count_down(_Atomic uint32_t *references)
{
    return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

static struct held_value *value_new(struct slice bytes)
{
    struct held_value *value = must_alloc(sizeof *value + bytes.len);
    atomic_init(&value->references, 1);
    value->len = bytes.len;
    if (bytes.len) memcpy(value->bytes, bytes.data, bytes.len);
    return value;
}

static void value_release(struct held_value *value)
{
    if (count_down(&value->references)) free(value);
}

struct tree_node *tree_hold(struct tree_node *tree)
{
    if (tree) count_up(&tree->references);
    return tree;
}

void tree_release(struct tree_node *tree)
{
    while (tree && count_down(&tree->references)) {
        struct tree_node *right = tree->right;
        tree_release(tree->left);
        value_release(tree->value);
        free(tree);
        tree = right;
    }
}

/* ---- nodes ---- */

static struct slice node_key(const struct tree_node *node)
{
    return (struct slice){node->key, node->key_len};
}

static struct slice node_value(const struct tree_node *node)
{
    return (struct slice){node->value->bytes, node->value->len};
}

static void node_sum(struct tree_node *node)
{
    node->count = 1 + tree_count(node->left) + tree_count(node->right);
    node->bytes = sizeof *node + node->key_len + sizeof *node->value + node->value->len +
                  tree_bytes(node->left) + tree_bytes(node->right);
}

/* Takes the value's reference. */
static struct tree_node *node_new(struct slice key, struct held_value *value, uint32_t priority)
{
    ensure(key.len <= UINT32_MAX);
    struct tree_node *node = must_alloc(sizeof *node + key.len);
    atomic_init(&node->references, 1);
    node->priority = priority;
    node->left = node->right = NULL;
    node->value = value;
    node->key_len = (uint32_t)key.len;
    if (key.len) memcpy(node->key, key.data, key.len);
    node_sum(node);
    return node;
}

/* Turns the caller's reference into one that it alone holds: the node itself, or a copy of it (M2). */
static struct tree_node *node_own(struct tree_node *node)
{
    if (atomic_load_explicit(&node->references, memory_order_acquire) == 1) return node;
    count_up(&node->value->references);
    struct tree_node *copy = node_new(node_key(node), node->value, node->priority);
    copy->left = tree_hold(node->left);
    copy->right = tree_hold(node->right);
    copy->count = node->count;
    copy->bytes = node->bytes;
    tree_release(node);
    return copy;
}

/* Keys below `key` go to *low, the others to *high. */
static void tree_split(struct tree_node *tree, struct slice key, struct tree_node **low,
                       struct tree_node **high)
{
    if (!tree) {
        *low = *high = NULL;
        return;
    }
    tree = node_own(tree);
    if (slice_compare(node_key(tree), key) < 0) {
        *low = tree;
        tree_split(tree->right, key, &tree->right, high);
    } else {
        *high = tree;
        tree_split(tree->left, key, low, &tree->left);
    }
    node_sum(tree);
}

/* One tree from two, all keys of the first being below those of the second. */
static struct tree_node *tree_join(struct tree_node *low, struct tree_node *high)
{
    if (!low) return high;
    if (!high) return low;
    struct tree_node *top;
    if (low->priority >= high->priority) {
        top = node_own(low);
        top->right = tree_join(top->right, high);
    } else {
        top = node_own(high);
        top->left = tree_join(low, top->left);
    }
    node_sum(top);
    return top;
}

/* ---- changes ---- */

/* The new key goes above this tree. */
static struct tree_node *put_above(struct tree_node *tree, struct slice key, struct held_value *value,
                                   uint32_t priority)
{
    struct tree_node *node = node_new(key, value, priority);
    tree_split(tree, key, &node->left, &node->right);
    node_sum(node);
    return node;
}

static struct tree_node *put_value(struct tree_node *tree, struct slice key, struct held_value *value,
                                   uint32_t priority)
{
    if (!tree) return node_new(key, value, priority);
    int order = slice_compare(key, node_key(tree));
    if (order != 0 && priority > tree->priority) {
        if (!tree_find(tree, key, NULL)) return put_above(tree, key, value, priority);
        priority = 0; /* the key stands further down and keeps its place */
    }
    tree = node_own(tree);
    if (order == 0) {
        value_release(tree->value);
        tree->value = value;
    } else if (order < 0) {
        tree->left = put_value(tree->left, key, value, priority);
    } else {
        tree->right = put_value(tree->right, key, value, priority);
    }
    node_sum(tree);
    return tree;
}

struct tree_node *tree_put(struct tree_node *tree, struct slice key, struct slice value,
                           struct random *random)
{
    return put_value(tree, key, value_new(value), (uint32_t)random_next(random));
}

static struct tree_node *delete_found(struct tree_node *tree, struct slice key)
{
    tree = node_own(tree);
    int order = slice_compare(key, node_key(tree));
    if (order == 0) {
        struct tree_node *rest = tree_join(tree->left, tree->right);
        tree->left = tree->right = NULL;
        tree_release(tree);
        return rest;
    }
    if (order < 0) {
        tree->left = delete_found(tree->left, key);
    } else {
        tree->right = delete_found(tree->right, key);
    }
    node_sum(tree);
    return tree;
}

struct tree_node *tree_delete(struct tree_node *tree, struct slice key)
{
    return tree_find(tree, key, NULL) ? delete_found(tree, key) : tree;
}

struct tree_node *tree_delete_range(struct tree_node *tree, struct slice from, struct slice to)
{
    struct tree_node *before, *within, *behind;
    if (slice_compare(from, to) >= 0) return tree;
    tree_split(tree, from, &before, &within);
    tree_split(within, to, &within, &behind);
    tree_release(within);
    return tree_join(before, behind);
}

/* ---- reading ---- */

bool tree_find(const struct tree_node *tree, struct slice key, struct slice *value)
{
    while (tree) {
        int order = slice_compare(key, node_key(tree));
        if (order == 0) {
            if (value) *value = node_value(tree);
            return true;
        }
        tree = order < 0 ? tree->left : tree->right;
    }
    return false;
}

bool tree_scan(const struct tree_node *tree, struct slice from, struct slice to, store_visitor visitor,
               void *context)
{
    while (tree) {
        struct slice key = node_key(tree);
        bool reached = slice_compare(key, from) >= 0;
        if (reached && !tree_scan(tree->left, from, to, visitor, context)) return false;
        if (to.len && slice_compare(key, to) >= 0) return true;
        if (reached && !visitor(context, key, node_value(tree))) return false;
        tree = tree->right;
    }
    return true;
}

bool tree_scan_backwards(const struct tree_node *tree, struct slice from, struct slice to,
                         store_visitor visitor, void *context)
{
    while (tree) {
        struct slice key = node_key(tree);
        bool reached = !to.len || slice_compare(key, to) < 0;
        if (reached && !tree_scan_backwards(tree->right, from, to, visitor, context)) return false;
        if (slice_compare(key, from) < 0) return true;
        if (reached && !visitor(context, key, node_value(tree))) return false;
        tree = tree->left;
    }
    return true;
}

uint64_t tree_count(const struct tree_node *tree)
{
    return tree ? tree->count : 0;
}

uint64_t tree_bytes(const struct tree_node *tree)
{
    return tree ? tree->bytes : 0;
}
