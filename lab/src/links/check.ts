export async function runCheck(_a: string[], _h: string): Promise<number> { return 0; }
