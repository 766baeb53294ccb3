/**
 * What the paper says in words: J. Zhao, X. Zhang, X. Wang, "An Architecture Design of GPU-Accelerated VoD Streaming
 * Servers with Network Coding" (2010). Its curves are drawings without numbers, so only these sentences can be
 * compared. Its server: two quad-core Xeon 5405 at 2.0 GHz, one GeForce 8800 GT, Gigabit Ethernet.
 */
export interface PaperValue {
  figure: string;
  /** Where the sentence is. */
  section: string;
  what: string;
  value: number;
  unit: string;
}

export const PAPER: readonly PaperValue[] = [
  { figure: "7b", section: "IV-C", what: "users at 100 ms, CPU alone (8 cores)", value: 200, unit: "users" },
  { figure: "7b", section: "IV-C", what: "users at 100 ms, GPU alone", value: 350, unit: "users" },
  { figure: "7b", section: "IV-C", what: "users at 100 ms, both", value: 500, unit: "users" },
  { figure: "5", section: "I", what: "coding rate of the GPU over a quad-core CPU with SSE2", value: 2, unit: "x" },
  { figure: "7b", section: "I", what: "capacity of both over the CPU alone", value: 2, unit: "x" },
];

/** The users of Fig. 7b at 100 ms. */
export const PAPER_USERS = { cpu: 200, gpu: 350, both: 500 } as const;
