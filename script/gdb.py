"""For gdb: `quipu-tasks` prints the stack of every task that waits, of a live process or of a core file.

    gdb -p $(pidof quipu) -x script/gdb.py -ex quipu-tasks -ex detach -ex quit

A task waits on a stack of its own, which belongs to no thread (src/fiber/fiber.c). Where it waits, its registers are in
a jmp_buf, from which gdb is told how to go on from the innermost frame of the selected thread: nothing is written,
and no code of the process is run.
"""
import gdb
from gdb.unwinder import Unwinder, register_unwinder

# glibc's order for x86-64; those that are mangled are turned left by 17 bits after an xor with the thread's guard
REGISTERS = ("rbx", "rbp", "r12", "r13", "r14", "r15", "rsp", "rip")
MANGLED = {"rbp", "rsp", "rip"}
GUARD_OFFSET = 0x30
MASK = (1 << 64) - 1


def number(expression):
    return int(gdb.parse_and_eval(expression)) & MASK


def registers_of(fiber):
    word = gdb.lookup_type("unsigned long").pointer()
    guard = int(gdb.Value(number("$fs_base") + GUARD_OFFSET).cast(word).dereference())
    saved = fiber["here"]["registers"][0]["__jmpbuf"]
    registers = {}
    for place, name in enumerate(REGISTERS):
        value = int(saved[place]) & MASK
        if name in MANGLED:
            value = ((value >> 17) | (value << 47)) & MASK ^ guard
        registers[name] = value
    return registers


class FrameId:
    def __init__(self, sp, pc):
        self.sp, self.pc = gdb.Value(sp), gdb.Value(pc)


class TaskUnwinder(Unwinder):
    """Behind the innermost frame of the thread come those of the task, while one is chosen."""

    def __init__(self):
        super().__init__("quipu task")
        self.registers = self.innermost = None

    def choose(self, registers):
        self.registers = None
        gdb.invalidate_cached_frames()
        if registers:
            self.innermost = number("$rsp"), number("$rip")
            self.registers = registers
            gdb.invalidate_cached_frames()

    def __call__(self, frame):
        if not self.registers:
            return None
        sp, pc = frame.read_register("rsp"), frame.read_register("rip")
        if (int(sp) & MASK, int(pc) & MASK) != self.innermost:
            return None
        # gdb wants frames that call each other in the order of their addresses
        unwind = frame.create_unwind_info(FrameId(self.registers["rsp"] - 16, int(pc)))
        for name, value in self.registers.items():
            like = frame.read_register(name)
            unwind.add_saved_register(name, gdb.Value(value).cast(like.type))
        return unwind


unwinder = TaskUnwinder()
register_unwinder(None, unwinder, replace=True)


def waiting():
    fiber = gdb.parse_and_eval("'src/fiber/fiber.c'::stacks.in_use")
    while int(fiber):
        if not bool(fiber["is_running"]):
            yield fiber
        fiber = fiber["next"]


class QuipuTasks(gdb.Command):
    """quipu-tasks [MOST]: prints the stack of every task that waits, or of the first MOST of them."""

    def __init__(self):
        super().__init__("quipu-tasks", gdb.COMMAND_STACK)

    def invoke(self, argument, _from_tty):
        if "x86-64" not in gdb.selected_inferior().architecture().name():
            raise gdb.GdbError("quipu-tasks knows the registers of x86-64 only.")
        most = int(argument) if argument else None
        count = 0
        try:
            for fiber in waiting():
                count += 1
                if most is not None and count > most:
                    continue
                unwinder.choose(registers_of(fiber))
                print(f"task {count}, stack at {int(fiber):#x}")
                for line in gdb.execute("backtrace", to_string=True).splitlines()[1:]:
                    if " stack_run " in line:  # below it there is nothing
                        break
                    print("  " + line)
        finally:
            unwinder.choose(None)
        print(f"{count} tasks wait.")


QuipuTasks()
