/** The order of a list as kept in the address. The default order is omitted. */
export type Order<Sort extends string> = { readonly sort?: Sort; readonly order?: Direction };
export type Direction = 'asc' | 'desc';

type Way<Asked> = {
  /** The query for the server. */
  readonly asked: Asked;
  /** The default direction; only the other one is kept in the address. */
  readonly usual: Direction;
  readonly words: Readonly<Record<Direction, string>>;
};

/** The orders of a list. `first`: the default, if the address names none. */
export function listOrders<Sort extends string, Asked extends string>(
  ways: Readonly<Record<Sort, Way<Asked>>>,
  first: NoInfer<Sort>,
) {
  // Exactly the names of `ways`, in the order they are written in.
  const sorts = Object.keys(ways) as Sort[];

  /** The direction of the column `sort`; undefined while the list has another order. */
  function directionIn(shown: Order<Sort>, sort: Sort): Direction | undefined {
    return (shown.sort ?? first) === sort ? (shown.order ?? ways[sort].usual) : undefined;
  }

  return {
    sorts,
    directionIn,
    from(raw: Record<string, unknown>): Order<Sort> {
      const sort = sorts.find((one) => one === raw['sort']) ?? first;
      const order = (['asc', 'desc'] as const).find((one) => one === raw['order']);
      return {
        ...(sort === first ? {} : { sort }),
        ...(order === undefined || order === ways[sort].usual ? {} : { order }),
      };
    },
    /** The order that a click on a column head selects: its own, or the reverse if the list already has it. */
    next(shown: Order<Sort>, sort: Sort): { sort: Sort; order: Direction | undefined } {
      const now = directionIn(shown, sort);
      return { sort, order: now === undefined ? undefined : now === 'asc' ? 'desc' : 'asc' };
    },
    inWords(shown: Order<Sort>, sort: Sort): string {
      const { usual, words } = ways[sort];
      return words[directionIn(shown, sort) ?? usual];
    },
    asked({ sort = first, order = ways[sort].usual }: Order<Sort>) {
      return { sort: ways[sort].asked, order } as const;
    },
  };
}
