/**
 * ESLint rule: code in the page's world uses nothing that a script of the page can replace: no global, no member of the
 * language's or the browser's objects, no iterator, and no `instanceof`. In the page script, code that runs when its
 * module is loaded comes before the page (option `early`). What is kept for all other code is in src/shared (kept,
 * primordials, platform) and src/page/natives.ts.
 */

/** No script can replace them: an object has them itself, and not its prototype. */
const FIXED_GLOBALS = ["undefined", "NaN", "Infinity", "window", "document", "location"];
const FIXED_MEMBERS = new RegExp(
  "^prototype of |^length of (?:Array|ReadonlyArray|String|Function|undefined)$|^isTrusted|" +
    String.raw` of \w*(?:Location|Descriptor|Result)$`,
);

const MESSAGE = "A script of the page can replace {{what}}. Use primordials.ts, platform.ts or natives.ts.";
const FUNCTION = /^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/;

const isInType = ({ parent }) => parent.type === "TSTypeQuery" || parent.type === "TSQualifiedName";

function create(context) {
  const { program, esTreeNodeToTSNodeMap: typed } = context.sourceCode.parserServices;
  const checker = program.getTypeChecker();

  const runsLater = (node) => context.sourceCode.getAncestors(node).some(({ type }) => FUNCTION.test(type));
  const isEarly = context.options[0] === "early";
  const report = (node, what) =>
    (!isEarly || runsLater(node)) && context.report({ node, message: MESSAGE, data: { what } });

  function checkMember(node, name, symbol) {
    const from = symbol?.declarations?.find((each) => program.isSourceFileDefaultLibrary(each.getSourceFile()));
    const member = `${name} of ${from?.parent?.name?.text}`;
    if (from && !FIXED_MEMBERS.test(member)) report(node, member);
  }

  return {
    MemberExpression(node) {
      if (!node.computed && node.property.type === "Identifier")
        checkMember(node, node.property.name, checker.getSymbolAtLocation(typed.get(node.property)));
    },
    "ObjectPattern > Property"(node) {
      const type = checker.getTypeAtLocation(typed.get(node.parent));
      if (node.key.type === "Identifier") checkMember(node, node.key.name, type.getProperty(node.key.name));
    },
    "ForOfStatement, ArrayPattern, YieldExpression": (node) => report(node, "iterators"),
    ":not(ObjectExpression) > SpreadElement": (node) => report(node, "iterators"),
    "BinaryExpression[operator='instanceof']": (node) => report(node, "Symbol.hasInstance"),
    "Program:exit"() {
      for (const { references } of context.sourceCode.scopeManager.scopes)
        for (const { identifier, isValueReference, resolved } of references)
          if (
            isValueReference &&
            !isInType(identifier) &&
            !resolved?.defs.length &&
            !FIXED_GLOBALS.includes(identifier.name)
          )
            report(identifier, identifier.name);
    },
  };
}

export const primordials = { meta: { type: "problem", schema: [{ enum: ["early"] }] }, create };
