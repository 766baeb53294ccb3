/**
 * malloc, calloc and free for the module. Those of the C library would be a quarter of it. Blocks follow one another
 * without gaps and know their neighbours, so a freed block merges with them at once. Free blocks are in lists by size,
 * four for each power of two. Source: D. Knuth, The Art of Computer Programming 1, 2.5, boundary tags.
 */
#include <cstddef>
#include <cstdint>
#include <cstring>

/** The end of data and stack. The linker defines it. */
extern "C" uint8_t __heap_base;

namespace {

constexpr size_t kPageBytes = 65536;
constexpr size_t kAlignment = 16;
/** The largest block. Sums of smaller sizes do not overflow. */
constexpr size_t kBytesMax = SIZE_MAX / 2;
constexpr size_t kInUse = 1;

struct alignas(kAlignment) Block {
  /** The size with this header. The lowest bit is kInUse if the block is in use. */
  size_t bytes;
  /** The size of the block below. 0 in the first block. */
  size_t before;
  /** The neighbours in the list of free blocks. Undefined while this block is in use. */
  Block* next;
  Block* previous;
};

Block* lists[4 * 8 * sizeof(size_t)];
/** The end of the memory: a header that is in use and has no bytes. */
Block* last = nullptr;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
size_t bytesOf(const Block* block) { return block->bytes & ~kInUse; }
bool isFree(const Block* block) { return (block->bytes & kInUse) == 0; }
/** Offsets wrap around the address space, so one may be negative. */
Block* at(Block* block, size_t bytes) { return reinterpret_cast<Block*>(reinterpret_cast<size_t>(block) + bytes); }
Block* above(Block* block) { return at(block, bytesOf(block)); }

/** Returns the list of a size: its power of two and the next two binary digits. Sizes have at least five digits. */
size_t listOf(size_t bytes) {
  const int digits = 31 - __builtin_clz(bytes);
  return size_t(digits) << 2 | (bytes >> (digits - 2) & 3);
}

void link(Block* block) {
  Block*& first = lists[listOf(block->bytes)];
  block->previous = nullptr;
  block->next = first;
  if (first != nullptr) first->previous = block;
  first = block;
}

void unlink(Block* block) {
  (block->previous == nullptr ? lists[listOf(block->bytes)] : block->previous->next) = block->next;
  if (block->next != nullptr) block->next->previous = block->previous;
}

void release(Block* block) {
  block->bytes = bytesOf(block);
  if (Block* const upper = above(block); isFree(upper)) {
    unlink(upper);
    block->bytes += upper->bytes;
  }
  if (Block* const lower = at(block, -block->before); block->before != 0 && isFree(lower)) {
    unlink(lower);
    lower->bytes += block->bytes;
    block = lower;
  }
  above(block)->before = block->bytes;
  link(block);
}

/** Makes a free block of new memory: `bytes` bytes from `begin` on. Then marks the new end. */
void adopt(Block* begin, size_t bytes) {
  begin->bytes = bytes;
  last = above(begin);
  last->bytes = kInUse;
  release(begin);
}

bool grow(size_t bytes) {
  const size_t pages = (bytes + kPageBytes - 1) / kPageBytes;
  if (__builtin_wasm_memory_grow(0, pages) == SIZE_MAX) return false;
  adopt(last, pages * kPageBytes);
  return true;
}

/** Adopts the memory beyond the linker's data, and one new page, so that there is at least one. */
bool initialize() {
  const size_t begin = aligned(reinterpret_cast<size_t>(&__heap_base));
  if (__builtin_wasm_memory_grow(0, 1) == SIZE_MAX) return false;
  Block* const first = reinterpret_cast<Block*>(begin);
  first->before = 0;
  adopt(first, __builtin_wasm_memory_size(0) * kPageBytes - begin - sizeof(Block));
  return true;
}

/** Finds the first free block that is large enough, from the smallest list on. Returns nullptr if there is none. */
Block* find(size_t bytes) {
  for (size_t list = listOf(bytes); list < sizeof lists / sizeof lists[0]; list++) {
    for (Block* block = lists[list]; block != nullptr; block = block->next) {
      if (block->bytes >= bytes) return block;
    }
  }
  return nullptr;
}

/** Takes `bytes` of a free block. The rest of it stays free. */
void take(Block* block, size_t bytes) {
  unlink(block);
  if (const size_t left = block->bytes - bytes; left > sizeof(Block)) {
    Block* const rest = at(block, bytes);
    rest->bytes = left;
    rest->before = block->bytes = bytes;
    above(rest)->before = left;
    link(rest);
  }
  block->bytes |= kInUse;
}

}  // namespace

extern "C" void* malloc(size_t bytes) {
  if (bytes > kBytesMax || (last == nullptr && !initialize())) return nullptr;
  const size_t needed = aligned(bytes) + sizeof(Block);
  Block* block = find(needed);
  if (block == nullptr && grow(needed)) block = find(needed);
  if (block == nullptr) return nullptr;
  take(block, needed);
  return block + 1;
}

extern "C" void* calloc(size_t count, size_t bytes) {
  if (count != 0 && bytes > kBytesMax / count) return nullptr;
  void* const memory = malloc(count * bytes);
  if (memory != nullptr) memset(memory, 0, count * bytes);
  return memory;
}

extern "C" void free(void* memory) {
  if (memory != nullptr) release(static_cast<Block*>(memory) - 1);
}
