/**
 * ESLint rule: code in the page's world uses nothing that a script of the page can replace: no global, no member of the
 * language's or the browser's objects, no iterator, and no `instanceof`. Code that runs when its module is loaded comes
 * before the page. What is kept for all other code is in src/shared/primordials.ts and src/page/natives.ts.
 */

/** No script can replace them: an object has them itself, and not its prototype. */
const FIXED_GLOBALS = ["undefined", "window", "document", "location"];
const FIXED_MEMBERS =
  /^(?:prototype|length) of \w*(?:Array|String|Function|undefined)$|^isTrusted| of \w*(?:Location|Descriptor|Result)$/;

const MESSAGE = "A script of the page can replace {{what}}. Use primordials.ts or natives.ts.";
const FUNCTION = /^(?:FunctionDeclaration|FunctionExpression|ArrowFunctionExpression)$/;

function create(context) {
  const { program, esTreeNodeToTSNodeMap: typed } = context.sourceCode.parserServices;
  const checker = program.getTypeChecker();

  const runsLater = (node) => context.sourceCode.getAncestors(node).some(({ type }) => FUNCTION.test(type));
  const report = (node, what) => runsLater(node) && context.report({ node, message: MESSAGE, data: { what } });

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
          if (isValueReference && !resolved?.defs.length && !FIXED_GLOBALS.includes(identifier.name))
            report(identifier, identifier.name);
    },
  };
}

export const primordials = { meta: { type: "problem", schema: [] }, create };
