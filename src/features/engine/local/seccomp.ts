/**
 * The filter of system calls for a sandbox (seccomp(2)) in the format of bwrap(1): an array of `struct sock_filter` for this
 * processor. It refuses calls that no build or service needs and that widen a tenant's attack surface in the kernel:
 *
 * - user namespaces, in which a process has every capability over what it creates there;
 * - the keyring of the session, which bwrap does not replace (keyrings(7));
 * - prctl(PR_SET_MM), which changes what other processes read about the process in /proc;
 * - io_uring, BPF, performance counters and userfaultfd.
 *
 * Container engines refuse the same by default. Undefined: Postern does not know the call numbers of this processor.
 */
export function seccompFilter(architecture: string = process.arch): Buffer | undefined {
  const known = architectures[architecture];
  if (known === undefined) return undefined;
  const { audit, calls } = known;
  const refuse = (number: number, errno: number) => [jumpUnless(number, 1), give(errorOf + errno)];
  /** Refuses the call `number` when its first argument matches. */
  const refuseWhere = (number: number, fits: Instruction) => [
    jumpUnless(number, 4),
    load(firstArgument),
    fits,
    give(errorOf + eperm),
    give(allow),
  ];
  const program = [
    load(architectureOfCall),
    // A program of another architecture, such as one of 32 bits, has other numbers.
    [jumpIfEqual, 1, 0, audit] as const,
    give(killProcess),
    load(callNumber),
    // The x32 calls of x86_64.
    [jumpIfAtLeast, 0, 1, 0x40000000] as const,
    give(errorOf + enosys),
    ...calls.eperm.flatMap((number) => refuse(number, eperm)),
    // Programs then fall back to older calls.
    ...[...ioUring, clone3].flatMap((number) => refuse(number, enosys)),
    ...refuseWhere(calls.clone, [jumpIfBitSet, 0, 1, newUserNamespace]),
    ...refuseWhere(calls.unshare, [jumpIfBitSet, 0, 1, newUserNamespace]),
    ...refuseWhere(calls.prctl, [jumpIfEqual, 0, 1, setMemoryMap]),
    give(allow),
  ];
  const filter = Buffer.alloc(8 * program.length);
  for (const [at, [code, ifTrue, ifFalse, value]] of program.entries()) {
    filter.writeUInt16LE(code, 8 * at);
    filter.writeUInt8(ifTrue, 8 * at + 2);
    filter.writeUInt8(ifFalse, 8 * at + 3);
    filter.writeUInt32LE(value, 8 * at + 4);
  }
  return filter;
}

/** `struct sock_filter` (linux/filter.h): the code, the jumps if it is true and if it is false, and a number. */
type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

/** linux/bpf_common.h. */
const [loadWord, jumpIfEqual, jumpIfAtLeast, jumpIfBitSet, giveBack] = [0x20, 0x15, 0x35, 0x45, 0x06];
/** Offsets in `struct seccomp_data` (linux/seccomp.h). The low half of the first argument, on little-endian processors. */
const [callNumber, architectureOfCall, firstArgument] = [0, 4, 16];
/** linux/seccomp.h. */
const [allow, errorOf, killProcess] = [0x7fff0000, 0x00050000, 0x80000000];
const [eperm, enosys] = [1, 38];
/** CLONE_NEWUSER of clone(2), and PR_SET_MM of prctl(2). */
const [newUserNamespace, setMemoryMap] = [0x10000000, 35];
/** The same on every architecture. */
const [clone3, ioUring] = [435, [425, 426, 427]];

const load = (offset: number): Instruction => [loadWord, 0, 0, offset];
const give = (action: number): Instruction => [giveBack, 0, 0, action];
/** Skips `count` instructions unless the call has this number. */
const jumpUnless = (number: number, count: number): Instruction => [jumpIfEqual, 0, count, number];

/** `audit`: AUDIT_ARCH of linux/audit.h. `eperm`: add_key, request_key, keyctl, bpf, perf_event_open, userfaultfd. */
const architectures: Readonly<
  Record<
    string,
    {
      readonly audit: number;
      readonly calls: {
        readonly eperm: readonly number[];
        readonly clone: number;
        readonly unshare: number;
        readonly prctl: number;
      };
    }
  >
> = {
  x64: {
    audit: 0xc000003e,
    calls: { eperm: [248, 249, 250, 321, 298, 323], clone: 56, unshare: 272, prctl: 157 },
  },
  arm64: {
    audit: 0xc00000b7,
    calls: { eperm: [217, 218, 219, 280, 241, 282], clone: 220, unshare: 97, prctl: 167 },
  },
};
