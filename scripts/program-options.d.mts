export const programOptions: readonly string[];
