// Made by `npm run types`.
export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * @description State of a market.
         *
         *     - `STATE_UNSPECIFIED`: Unknown; as a filter: all.
         *     - `STATE_PROPOSED`: Being voted on.
         *     - `STATE_REJECTED`: Voted down.
         *     - `STATE_PENDING`: Voted for, in its opening auction.
         *     - `STATE_CANCELLED`: Given up before it opened.
         *     - `STATE_ACTIVE`: Trading.
         *     - `STATE_SUSPENDED`: In an auction that its monitoring began.
         *     - `STATE_CLOSED`: Closed by vote.
         *     - `STATE_TRADING_TERMINATED`: No longer trading, to be settled.
         *     - `STATE_SETTLED`: Settled; final.
         * @enum {string}
         */
        MarketState: "STATE_UNSPECIFIED" | "STATE_PROPOSED" | "STATE_REJECTED" | "STATE_PENDING" | "STATE_CANCELLED" | "STATE_ACTIVE" | "STATE_SUSPENDED" | "STATE_CLOSED" | "STATE_TRADING_TERMINATED" | "STATE_SETTLED";
        /** @description One page of markets. */
        ListMarketsReply: {
            /** @description The page. */
            markets: components["schemas"]["MarketPage"];
        };
        /** @description A page of markets in display order. */
        MarketPage: {
            /** @description The rows with their cursors. */
            edges: components["schemas"]["MarketEdge"][];
            /** @description The position of the page in its list. */
            pageInfo: components["schemas"]["PageInfo"];
        };
        /** @description A market with its position. */
        MarketEdge: {
            /** @description The market. */
            node: components["schemas"]["Market"];
            /** @description Its position in the list. */
            cursor: string;
        };
        /** @description A market. Prices are decimal integers, to be divided by 10 to the power of `decimalPlaces`; sizes and volumes likewise by `positionDecimalPlaces`. */
        Market: {
            /** @description Id, 64 lower-case hex digits. */
            id: string;
            /** @description Short name of its instrument, e.g. `BTC/USD-MAR`. */
            code: string;
            /** @description Full name of its instrument. */
            name: string;
            /** @description Quote currency of its prices, e.g. `USD`. */
            quoteName: string;
            /** @description Asset in which it settles. */
            settlementAsset: string;
            /**
             * Format: int32
             * @description Decimal places of its prices.
             */
            decimalPlaces: number;
            /**
             * Format: int32
             * @description Decimal places of its sizes and volumes; negative when they count tens, hundreds …
             */
            positionDecimalPlaces: number;
            /** @description How it trades. */
            tradingMode: components["schemas"]["MarketTradingMode"];
            /** @description State of the market. */
            state: components["schemas"]["MarketState"];
            /**
             * Format: int64
             * @description Opening time, past or planned, nanoseconds since the Unix epoch; absent when not set.
             */
            openedAt?: string;
            /** @description Price at which positions are valued; empty when the market has no data. */
            markPrice: string;
            /** @description Highest price that is bid; empty when the market has no data. */
            bestBidPrice: string;
            /** @description Lowest price that is asked; empty when the market has no data. */
            bestOfferPrice: string;
            /** @description Sum of the long positions; empty when the market has no data. */
            openInterest: string;
        };
        /**
         * @description How a market trades.
         *
         *     - `TRADING_MODE_UNSPECIFIED`: Unknown.
         *     - `TRADING_MODE_CONTINUOUS`: Orders are matched as they come.
         *     - `TRADING_MODE_BATCH_AUCTION`: Frequent batch auctions.
         *     - `TRADING_MODE_OPENING_AUCTION`: The auction with which it opens.
         *     - `TRADING_MODE_MONITORING_AUCTION`: An auction that its monitoring began.
         *     - `TRADING_MODE_NO_TRADING`: No trading.
         * @enum {string}
         */
        MarketTradingMode: "TRADING_MODE_UNSPECIFIED" | "TRADING_MODE_CONTINUOUS" | "TRADING_MODE_BATCH_AUCTION" | "TRADING_MODE_OPENING_AUCTION" | "TRADING_MODE_MONITORING_AUCTION" | "TRADING_MODE_NO_TRADING";
        /** @description The position of a page in its list. */
        PageInfo: {
            /** @description Cursor of the first edge, empty for an empty page. */
            startCursor: string;
            /** @description Cursor of the last edge, empty for an empty page. */
            endCursor: string;
            /** @description Whether a row follows the last row of this page in display order. */
            hasNextPage: boolean;
            /** @description Whether a row precedes the first row of this page in display order. */
            hasPreviousPage: boolean;
        };
        /** @description One page of trades. */
        ListTradesReply: {
            /** @description The page. */
            trades: components["schemas"]["TradePage"];
        };
        /** @description A page of trades in display order. */
        TradePage: {
            /** @description The rows with their cursors. */
            edges: components["schemas"]["TradeEdge"][];
            /** @description The position of the page in its list. */
            pageInfo: components["schemas"]["PageInfo"];
        };
        /** @description A trade with its position. */
        TradeEdge: {
            /** @description The trade. */
            node: components["schemas"]["Trade"];
            /** @description Its position in the list. */
            cursor: string;
        };
        /** @description A trade between two parties. */
        Trade: {
            /** @description Id, 64 lower-case hex digits. */
            id: string;
            /** @description Market. */
            marketId: string;
            /** @description Decimal integer in the market's smallest unit of price. */
            price: string;
            /**
             * Format: uint64
             * @description In the market's smallest unit of size.
             */
            size: string;
            /** @description Party that bought. */
            buyer: string;
            /** @description Party that sold. */
            seller: string;
            /** @description Side of the incoming order. */
            aggressor: components["schemas"]["Side"];
            /** @description Order of the buyer. */
            buyOrder: string;
            /** @description Order of the seller. */
            sellOrder: string;
            /** @description Cause of the trade. */
            type: components["schemas"]["TradeType"];
            /**
             * Format: int64
             * @description Time, nanoseconds since the Unix epoch; unique.
             */
            timestamp: string;
        };
        /**
         * @description Side of an order or a trade.
         *
         *     - `SIDE_UNSPECIFIED`: Unknown, or neither: an auction's trade.
         *     - `SIDE_BUY`: Buys.
         *     - `SIDE_SELL`: Sells.
         * @enum {string}
         */
        Side: "SIDE_UNSPECIFIED" | "SIDE_BUY" | "SIDE_SELL";
        /**
         * @description Cause of a trade.
         *
         *     - `TYPE_UNSPECIFIED`: Unknown.
         *     - `TYPE_DEFAULT`: Two orders were matched.
         *     - `TYPE_NETWORK_CLOSE_OUT_GOOD`: The network closed out a party, this one traded with the network.
         *     - `TYPE_NETWORK_CLOSE_OUT_BAD`: The network closed out this party.
         * @enum {string}
         */
        TradeType: "TYPE_UNSPECIFIED" | "TYPE_DEFAULT" | "TYPE_NETWORK_CLOSE_OUT_GOOD" | "TYPE_NETWORK_CLOSE_OUT_BAD";
        /** @description One page of candles. */
        ListCandleDataReply: {
            /** @description The page. */
            candles: components["schemas"]["CandlePage"];
        };
        /** @description A page of candles in display order. */
        CandlePage: {
            /** @description The rows with their cursors. */
            edges: components["schemas"]["CandleEdge"][];
            /** @description The position of the page in its list. */
            pageInfo: components["schemas"]["PageInfo"];
        };
        /** @description A candle with its position. */
        CandleEdge: {
            /** @description The candle. */
            node: components["schemas"]["Candle"];
            /** @description Its position in the list. */
            cursor: string;
        };
        /** @description The trades of one period of one market. Prices are decimal integers in the market's smallest unit. */
        Candle: {
            /**
             * Format: int64
             * @description Start of the period, nanoseconds since the Unix epoch.
             */
            start: string;
            /**
             * Format: int64
             * @description Time of the last trade in the period, nanoseconds since the Unix epoch.
             */
            lastUpdate: string;
            /** @description Greatest price. */
            high: string;
            /** @description Smallest price. */
            low: string;
            /** @description Price of the first trade. */
            open: string;
            /** @description Price of the last trade. */
            close: string;
            /**
             * Format: uint64
             * @description Sum of the traded sizes.
             */
            volume: string;
        };
        /** @description The intervals of a market. */
        ListCandleIntervalsReply: {
            /** @description Shortest first. */
            intervalToCandleId: components["schemas"]["IntervalToCandleId"][];
        };
        /** @description An interval and the id of its candles. */
        IntervalToCandleId: {
            /** @description The interval with spaces, e.g. `15 minutes`. */
            interval: string;
            /** @description The candle id, see ListCandleData. */
            candleId: string;
        };
        /**
         * @description Whether an asset can be used.
         *
         *     - `STATUS_UNSPECIFIED`: Unknown; as a filter: all.
         *     - `STATUS_PROPOSED`: Being voted on.
         *     - `STATUS_REJECTED`: Voted down; final.
         *     - `STATUS_PENDING_LISTING`: Voted for, not yet listed on the foreign chain.
         *     - `STATUS_ENABLED`: In use.
         * @enum {string}
         */
        AssetStatus: "STATUS_UNSPECIFIED" | "STATUS_PROPOSED" | "STATUS_REJECTED" | "STATUS_PENDING_LISTING" | "STATUS_ENABLED";
        /** @description One page of assets. */
        ListAssetsReply: {
            /** @description The page. */
            assets: components["schemas"]["AssetPage"];
        };
        /** @description A page of assets in display order. */
        AssetPage: {
            /** @description The rows with their cursors. */
            edges: components["schemas"]["AssetEdge"][];
            /** @description The position of the page in its list. */
            pageInfo: components["schemas"]["PageInfo"];
        };
        /** @description An asset with its position. */
        AssetEdge: {
            /** @description The asset. */
            node: components["schemas"]["Asset"];
            /** @description Its position in the list. */
            cursor: string;
        };
        /** @description An asset. Amounts of it are decimal integers, to be divided by 10 to the power of `decimals`. */
        Asset: {
            /** @description Id: 64 lower-case hex digits, or a short word. */
            id: string;
            /** @description Full name. */
            name: string;
            /** @description Short name, e.g. `USDT`. */
            symbol: string;
            /**
             * Format: int32
             * @description Decimal places of its amounts.
             */
            decimals: number;
            /** @description A small amount in its smallest unit, by which the network scales; empty when unknown. */
            quantum: string;
            /** @description Whether it can be used. */
            status: components["schemas"]["AssetStatus"];
            /** @description Address of its contract on Ethereum, `0x` and 40 hex digits in any case; empty when it has none. */
            erc20Contract: string;
        };
        /** @description The requested oracle spec. */
        GetOracleSpecReply: {
            /** @description The oracle spec. */
            oracleSpec: components["schemas"]["OracleSpec"];
        };
        /** @description A data source of markets. */
        OracleSpec: {
            /** @description The external data source behind it. */
            externalDataSourceSpec: components["schemas"]["ExternalDataSourceSpec"];
        };
        /** @description Wraps the spec, as published. */
        ExternalDataSourceSpec: {
            /** @description The spec itself. */
            spec: components["schemas"]["DataSourceSpec"];
        };
        /** @description One version of a data source spec. */
        DataSourceSpec: {
            /** @description Id, 64 lower-case hex digits. */
            id: string;
            /**
             * Format: int64
             * @description Nanoseconds since the Unix epoch.
             */
            createdAt: string;
            /**
             * Format: int64
             * @description Nanoseconds since the Unix epoch; 0 = never.
             */
            updatedAt: string;
            /** @description Whether the spec is in use. */
            status: components["schemas"]["DataSourceSpecStatus"];
            /** @description The source of the data and the conditions on it. */
            data: components["schemas"]["DataSourceDefinition"];
        };
        /**
         * @description Whether the spec is in use.
         *
         *     - `STATUS_UNSPECIFIED`: Unknown.
         *     - `STATUS_ACTIVE`: Data is accepted.
         *     - `STATUS_DEACTIVATED`: No longer used; final.
         * @enum {string}
         */
        DataSourceSpecStatus: "STATUS_UNSPECIFIED" | "STATUS_ACTIVE" | "STATUS_DEACTIVATED";
        /** @description The source of data: exactly one of the two. */
        DataSourceDefinition: {
            /** @description Data signed by a key outside the network. */
            external?: components["schemas"]["DataSourceDefinitionExternal"];
            /** @description Data that the network generates. */
            internal?: components["schemas"]["DataSourceDefinitionInternal"];
        };
        /** @description Data from outside the network. */
        DataSourceDefinitionExternal: {
            /** @description An oracle. */
            oracle: components["schemas"]["DataSourceSpecConfiguration"];
        };
        /** @description The signers of the data and the conditions on it. */
        DataSourceSpecConfiguration: {
            /** @description Keys whose data is accepted. */
            signers: components["schemas"]["Signer"][];
            /** @description Conditions that the data must fulfil. */
            filters: components["schemas"]["Filter"][];
        };
        /** @description A signer of data. */
        Signer: {
            /** @description A key of this network. */
            pubKey?: components["schemas"]["PubKey"];
            /** @description An address on Ethereum. */
            ethAddress?: components["schemas"]["EthAddress"];
        };
        /** @description A public key. */
        PubKey: {
            /** @description The key in hex. */
            key: string;
        };
        /** @description An Ethereum address. */
        EthAddress: {
            /** @description `0x` and 40 hex digits. */
            address: string;
        };
        /** @description A property of the data and its conditions. */
        Filter: {
            /** @description The property. */
            key: components["schemas"]["PropertyKey"];
            /** @description All of these hold. */
            conditions: components["schemas"]["Condition"][];
        };
        /** @description A property of oracle data. */
        PropertyKey: {
            /** @description Its name, e.g. `prices.ETH.value`. */
            name: string;
            /** @description Its type. */
            type: components["schemas"]["PropertyKeyType"];
            /**
             * Format: uint64
             * @description Decimal places of a number, if specified.
             */
            numberDecimalPlaces?: string;
        };
        /**
         * @description Type of a property.
         *
         *     - `TYPE_UNSPECIFIED`: Unknown.
         *     - `TYPE_EMPTY`: Any type.
         *     - `TYPE_INTEGER`: Whole number.
         *     - `TYPE_STRING`: Text.
         *     - `TYPE_BOOLEAN`: True or false.
         *     - `TYPE_DECIMAL`: Decimal number.
         *     - `TYPE_TIMESTAMP`: Seconds since the Unix epoch.
         * @enum {string}
         */
        PropertyKeyType: "TYPE_UNSPECIFIED" | "TYPE_EMPTY" | "TYPE_INTEGER" | "TYPE_STRING" | "TYPE_BOOLEAN" | "TYPE_DECIMAL" | "TYPE_TIMESTAMP";
        /** @description A comparison with a value. */
        Condition: {
            /** @description How to compare. */
            operator: components["schemas"]["ConditionOperator"];
            /** @description The value to compare with. */
            value: string;
        };
        /**
         * @description How to compare.
         *
         *     - `OPERATOR_UNSPECIFIED`: Unknown.
         *     - `OPERATOR_EQUALS`: Equal.
         *     - `OPERATOR_GREATER_THAN`: Greater.
         *     - `OPERATOR_GREATER_THAN_OR_EQUAL`: Greater or equal.
         *     - `OPERATOR_LESS_THAN`: Less.
         *     - `OPERATOR_LESS_THAN_OR_EQUAL`: Less or equal.
         * @enum {string}
         */
        ConditionOperator: "OPERATOR_UNSPECIFIED" | "OPERATOR_EQUALS" | "OPERATOR_GREATER_THAN" | "OPERATOR_GREATER_THAN_OR_EQUAL" | "OPERATOR_LESS_THAN" | "OPERATOR_LESS_THAN_OR_EQUAL";
        /** @description Data that the network generates. */
        DataSourceDefinitionInternal: {
            /** @description The network's own time. */
            time: components["schemas"]["DataSourceSpecConfigurationTime"];
        };
        /** @description Conditions on the network's time. */
        DataSourceSpecConfigurationTime: {
            /** @description All of these hold; values are seconds since the Unix epoch. */
            conditions: components["schemas"]["Condition"][];
        };
        /** @description The matching accounts: all of them, or a page. */
        ListAccountsReply: {
            /** @description Sorted by party (`network` first), market, asset and type number. */
            accounts: components["schemas"]["AccountBalance"][];
            /** @description The position of the page in its list; absent for a request without `pagination.*`. */
            pageInfo?: components["schemas"]["PageInfo"];
        };
        /** @description An account and its balance. */
        AccountBalance: {
            /** @description Owner, or `network`. */
            party: string;
            /** @description Market, empty when the account belongs to none. */
            market: string;
            /** @description Decimal integer in the asset's smallest unit. */
            balance: string;
            /** @description Asset id. */
            asset: string;
            /** @description Purpose of the account. */
            type: components["schemas"]["AccountType"];
        };
        /**
         * @description Purpose of an account.
         *
         *     - `ACCOUNT_TYPE_UNSPECIFIED`: Unknown.
         *     - `ACCOUNT_TYPE_INSURANCE`: Insurance pool of a market.
         *     - `ACCOUNT_TYPE_SETTLEMENT`: Settlement of a market.
         *     - `ACCOUNT_TYPE_MARGIN`: Margin of a party in a market.
         *     - `ACCOUNT_TYPE_GENERAL`: A party's free assets.
         *     - `ACCOUNT_TYPE_FEES_INFRASTRUCTURE`: Infrastructure fees.
         *     - `ACCOUNT_TYPE_FEES_LIQUIDITY`: Liquidity fees of a market.
         *     - `ACCOUNT_TYPE_FEES_MAKER`: Maker fees of a market.
         *     - `ACCOUNT_TYPE_BOND`: Bond of a liquidity provider.
         *     - `ACCOUNT_TYPE_EXTERNAL`: Assets outside the network.
         *     - `ACCOUNT_TYPE_GLOBAL_INSURANCE`: Insurance of an asset.
         *     - `ACCOUNT_TYPE_GLOBAL_REWARD`: Rewards of the whole network.
         *     - `ACCOUNT_TYPE_PENDING_TRANSFERS`: Transfers waiting.
         *     - `ACCOUNT_TYPE_REWARD_MAKER_PAID_FEES`: Rewards for paid maker fees.
         *     - `ACCOUNT_TYPE_REWARD_MAKER_RECEIVED_FEES`: Rewards for received maker fees.
         *     - `ACCOUNT_TYPE_REWARD_LP_RECEIVED_FEES`: Rewards for received liquidity fees.
         *     - `ACCOUNT_TYPE_REWARD_MARKET_PROPOSERS`: Rewards for market proposers.
         * @enum {string}
         */
        AccountType: "ACCOUNT_TYPE_UNSPECIFIED" | "ACCOUNT_TYPE_INSURANCE" | "ACCOUNT_TYPE_SETTLEMENT" | "ACCOUNT_TYPE_MARGIN" | "ACCOUNT_TYPE_GENERAL" | "ACCOUNT_TYPE_FEES_INFRASTRUCTURE" | "ACCOUNT_TYPE_FEES_LIQUIDITY" | "ACCOUNT_TYPE_FEES_MAKER" | "ACCOUNT_TYPE_BOND" | "ACCOUNT_TYPE_EXTERNAL" | "ACCOUNT_TYPE_GLOBAL_INSURANCE" | "ACCOUNT_TYPE_GLOBAL_REWARD" | "ACCOUNT_TYPE_PENDING_TRANSFERS" | "ACCOUNT_TYPE_REWARD_MAKER_PAID_FEES" | "ACCOUNT_TYPE_REWARD_MAKER_RECEIVED_FEES" | "ACCOUNT_TYPE_REWARD_LP_RECEIVED_FEES" | "ACCOUNT_TYPE_REWARD_MARKET_PROPOSERS";
        /** @description One page of positions. */
        ListPositionsReply: {
            /** @description The page. */
            positions: components["schemas"]["PositionPage"];
        };
        /** @description A page of positions in display order. */
        PositionPage: {
            /** @description The rows with their cursors. */
            edges: components["schemas"]["PositionEdge"][];
            /** @description The position of the page in its list. */
            pageInfo: components["schemas"]["PageInfo"];
        };
        /** @description A position with its position. */
        PositionEdge: {
            /** @description The position. */
            node: components["schemas"]["Position"];
            /** @description Its position in the list. */
            cursor: string;
        };
        /** @description The current position of a party in a market, including trades since the last settlement. Profits and the price are whole numbers, rounded half away from zero. */
        Position: {
            /** @description Market. */
            marketId: string;
            /** @description Party. */
            partyId: string;
            /**
             * Format: int64
             * @description Size in the market's smallest unit; negative = sold.
             */
            openVolume: string;
            /** @description Profit of what was closed, in the settlement asset's smallest unit; negative = loss. */
            realisedPnl: string;
            /** @description Profit of what is open at the mark price, in the settlement asset's smallest unit; negative = loss. */
            unrealisedPnl: string;
            /** @description Average price of what is open, in the market's smallest unit of price. */
            averageEntryPrice: string;
            /**
             * Format: int64
             * @description Time of the block that changed it last, nanoseconds since the Unix epoch.
             */
            updatedAt: string;
            /** @description Losses of other parties that this party covered, in the settlement asset's smallest unit; negative = received. */
            lossSocialisationAmount: string;
            /** @description Whether the network acted on the position because its margin was too low. */
            status: components["schemas"]["PositionStatus"];
            /** @description The position at the last settlement. */
            settled: components["schemas"]["SettledPosition"];
        };
        /**
         * @description Action of the network on a position whose margin was too low.
         *
         *     - `POSITION_STATUS_UNSPECIFIED`: Nothing.
         *     - `POSITION_STATUS_ORDERS_CLOSED`: It cancelled the party's orders.
         *     - `POSITION_STATUS_CLOSED_OUT`: It closed the position out.
         *     - `POSITION_STATUS_DISTRESSED`: It will close the position out as soon as it can.
         * @enum {string}
         */
        PositionStatus: "POSITION_STATUS_UNSPECIFIED" | "POSITION_STATUS_ORDERS_CLOSED" | "POSITION_STATUS_CLOSED_OUT" | "POSITION_STATUS_DISTRESSED";
        /** @description A position at the last settlement, as stored, with fractions. */
        SettledPosition: {
            /**
             * Format: int64
             * @description Size in the market's smallest unit; negative = sold.
             */
            openVolume: string;
            /** @description Profit of what was closed, in the settlement asset's smallest unit; negative = loss. */
            realisedPnl: string;
            /** @description Profit of what was open at the mark price, in the settlement asset's smallest unit; negative = loss. */
            unrealisedPnl: string;
            /** @description Average price of what was open, in the settlement asset's smallest unit. */
            averageEntryPrice: string;
        };
        /** @description One page of delegations. */
        ListDelegationsReply: {
            /** @description The page. */
            delegations: components["schemas"]["DelegationPage"];
        };
        /** @description A page of delegations in display order. */
        DelegationPage: {
            /** @description The rows with their cursors. */
            edges: components["schemas"]["DelegationEdge"][];
            /** @description The position of the page in its list. */
            pageInfo: components["schemas"]["PageInfo"];
        };
        /** @description A delegation with its position. */
        DelegationEdge: {
            /** @description The delegation. */
            node: components["schemas"]["Delegation"];
            /** @description Its position in the list. */
            cursor: string;
        };
        /** @description The delegation of a party to a node in an epoch. */
        Delegation: {
            /** @description Party that delegates. */
            party: string;
            /** @description Node that it delegates to. */
            nodeId: string;
            /** @description Decimal integer in the staking asset's smallest unit. */
            amount: string;
            /** @description Epoch, decimal. */
            epochSeq: string;
        };
        /** @description One page of reward summaries. */
        ListEpochRewardSummariesReply: {
            /** @description The page. */
            summaries: components["schemas"]["EpochRewardSummaryPage"];
        };
        /** @description A page of reward summaries in display order. */
        EpochRewardSummaryPage: {
            /** @description The rows with their cursors. */
            edges: components["schemas"]["EpochRewardSummaryEdge"][];
            /** @description The position of the page in its list. */
            pageInfo: components["schemas"]["PageInfo"];
        };
        /** @description A reward summary with its position. */
        EpochRewardSummaryEdge: {
            /** @description The summary. */
            node: components["schemas"]["EpochRewardSummary"];
            /** @description Its position in the list. */
            cursor: string;
        };
        /** @description Rewards of all parties in one epoch, market, asset and reward type. */
        EpochRewardSummary: {
            /**
             * Format: uint64
             * @description Epoch.
             */
            epoch: string;
            /** @description Asset that was paid. */
            assetId: string;
            /** @description Market that the reward is tied to, or empty. */
            marketId: string;
            /** @description Reward account, e.g. `ACCOUNT_TYPE_GLOBAL_REWARD`; other text is passed through. */
            rewardType: string;
            /** @description Sum, decimal integer in the asset's smallest unit. */
            amount: string;
        };
        /** @description The requested withdrawal. */
        GetWithdrawalReply: {
            /** @description Its latest version. */
            withdrawal: components["schemas"]["Withdrawal"];
        };
        /** @description Assets that leave the network. */
        Withdrawal: {
            /** @description Id, 64 lower-case hex digits. */
            id: string;
            /** @description Party that withdraws. */
            partyId: string;
            /** @description Decimal integer in the asset's smallest unit. */
            amount: string;
            /** @description Asset id. */
            asset: string;
            /** @description Status of the withdrawal. */
            status: components["schemas"]["WithdrawalStatus"];
            /** @description Reference that the foreign chain's contract uses. */
            ref: string;
            /** @description Hash of the transaction on the foreign chain, its own text; empty until known. */
            txHash: string;
            /**
             * Format: int64
             * @description Nanoseconds since the Unix epoch.
             */
            createdTimestamp: string;
            /**
             * Format: int64
             * @description Nanoseconds since the Unix epoch; 0 until finalised.
             */
            withdrawnTimestamp: string;
            /** @description Facts for the foreign chain, or empty. */
            ext: components["schemas"]["WithdrawExt"];
        };
        /**
         * @description Status of a withdrawal.
         *
         *     - `STATUS_UNSPECIFIED`: Unknown.
         *     - `STATUS_OPEN`: In progress.
         *     - `STATUS_REJECTED`: Refused; final.
         *     - `STATUS_FINALIZED`: Done; final.
         * @enum {string}
         */
        WithdrawalStatus: "STATUS_UNSPECIFIED" | "STATUS_OPEN" | "STATUS_REJECTED" | "STATUS_FINALIZED";
        /** @description Facts of a withdrawal for the foreign chain. */
        WithdrawExt: {
            /** @description An ERC-20 token. */
            erc20?: components["schemas"]["Erc20WithdrawExt"];
        };
        /** @description Facts of an ERC-20 withdrawal. */
        Erc20WithdrawExt: {
            /** @description Ethereum address that receives, `0x` and 40 hex digits. */
            receiverAddress: string;
        };
        /** @description A transaction and how long to wait. */
        SubmitTransactionRequest: {
            /** @description The transaction. */
            tx: components["schemas"]["Transaction"];
            /** @description What to wait for; absent or unspecified = TYPE_SYNC. */
            type?: components["schemas"]["SubmissionType"];
        };
        /** @description A signed transaction. Field numbers are those of its encoding, on which its hash depends. */
        Transaction: {
            /** @description The signed command, never empty. */
            inputData: string;
            /** @description Signature over the input data (and the chain id in version 3). */
            signature: components["schemas"]["Signature"];
            /** @description Public key, 64 hex digits. */
            pubKey: string;
            /** @description What is signed. */
            version: components["schemas"]["TxVersion"];
            /** @description Proof of work. */
            pow?: components["schemas"]["ProofOfWork"];
        };
        /** @description A signature. */
        Signature: {
            /** @description 128 hex digits. */
            value: string;
            /** @description Algorithm, as the network names it. */
            algo: string;
            /**
             * Format: uint32
             * @description Version of the algorithm, at least 1.
             */
            version: number;
        };
        /**
         * @description What a signature covers.
         *
         *     - `TX_VERSION_UNSPECIFIED`: Not a version.
         *     - `TX_VERSION_V2`: Adds proof of work.
         *     - `TX_VERSION_V3`: Binds the chain id.
         * @enum {string}
         */
        TxVersion: "TX_VERSION_UNSPECIFIED" | "TX_VERSION_V2" | "TX_VERSION_V3";
        /** @description A proof of work. */
        ProofOfWork: {
            /** @description Id that the work was done for; usable once. */
            tid?: string;
            /**
             * Format: uint64
             * @description Nonce that makes the hash small enough. A number is taken, too.
             */
            nonce?: string;
        };
        /**
         * @description What to wait for.
         *
         *     - `TYPE_UNSPECIFIED`: As TYPE_SYNC.
         *     - `TYPE_ASYNC`: Nothing: handed over, not checked.
         *     - `TYPE_SYNC`: The node's check.
         *     - `TYPE_COMMIT`: A block; for debugging.
         * @enum {string}
         */
        SubmissionType: "TYPE_UNSPECIFIED" | "TYPE_ASYNC" | "TYPE_SYNC" | "TYPE_COMMIT";
        /** @description What the node said. */
        SubmitTransactionReply: {
            /** @description Whether the node accepted the transaction (not yet confirmed). */
            success: boolean;
            /** @description SHA-256 of the encoded transaction, 64 upper-case hex digits; empty when refused. */
            txHash: string;
            /**
             * Format: uint32
             * @description The node's code, 0 = accepted.
             */
            code: number;
            /** @description The node's data; on refusal the reason. */
            data: string;
            /** @description The node's log. */
            log: string;
            /**
             * Format: int64
             * @description Height of the block (TYPE_COMMIT), otherwise 0.
             */
            height: string;
        };
        /** @description A transaction to check. */
        CheckTransactionRequest: {
            /** @description The transaction. */
            tx: components["schemas"]["Transaction"];
        };
        /** @description What the node's dry check said. */
        CheckTransactionReply: {
            /** @description Whether the node would accept it. */
            success: boolean;
            /**
             * Format: uint32
             * @description The node's code, 0 = fine.
             */
            code: number;
            /**
             * Format: int64
             * @description Gas wanted.
             */
            gasWanted: string;
            /**
             * Format: int64
             * @description Gas used.
             */
            gasUsed: string;
            /** @description The node's data. */
            data: string;
            /** @description The node's log. */
            log: string;
            /** @description The node's info. */
            info: string;
        };
        /** @description An encoded transaction and how long to wait. */
        SubmitRawTransactionRequest: {
            /** @description The encoded transaction. */
            tx: string;
            /** @description What to wait for; absent or unspecified = TYPE_SYNC. */
            type?: components["schemas"]["SubmissionType"];
        };
        /** @description An encoded transaction to check. */
        CheckRawTransactionRequest: {
            /** @description The encoded transaction. */
            tx: string;
        };
        /** @description The state of a transaction. */
        GetTransactionReply: {
            /** @description Hash, 64 upper-case hex digits. */
            txHash: string;
            /** @description Its state. */
            status: components["schemas"]["GetTransactionReplyStatus"];
            /**
             * Format: int64
             * @description Height of its block, or 0.
             */
            height: string;
            /**
             * Format: uint32
             * @description The node's code.
             */
            code: number;
            /** @description The node's log. */
            log: string;
        };
        /**
         * @description State of a transaction.
         *
         *     - `UNKNOWN`: The transaction is not known.
         *     - `PENDING`: Accepted, not yet in a block.
         *     - `INCLUDED`: In a block.
         *     - `REFUSED`: Refused.
         * @enum {string}
         */
        GetTransactionReplyStatus: "UNKNOWN" | "PENDING" | "INCLUDED" | "REFUSED";
        /** @description One consistent view: all of it belongs to the block at `height`. */
        LastBlockHeightReply: {
            /**
             * Format: uint64
             * @description Height of the newest block.
             */
            height: string;
            /** @description Hash of that block, 64 lower-case hex digits; the proof of work is computed on it. */
            hash: string;
            /** @description Hash function of the proof of work. */
            spamPowHashFunction: string;
            /**
             * Format: uint32
             * @description Leading zero bits that the proof of work needs.
             */
            spamPowDifficulty: number;
            /**
             * Format: uint32
             * @description How many of the newest blocks a transaction may be bound to.
             */
            spamPowNumberOfPastBlocks: number;
            /**
             * Format: uint32
             * @description Transactions per party and block at the base difficulty.
             */
            spamPowNumberOfTxPerBlock: number;
            /** @description Whether more transactions are allowed at increasing difficulty. */
            spamPowIncreasingDifficulty: boolean;
            /** @description Id of the chain. */
            chainId: string;
        };
        /** @description The limits in force. */
        GetNetworkLimitsReply: {
            /** @description Newest recorded limits. */
            limits: components["schemas"]["NetworkLimits"];
        };
        /** @description What the network allows. */
        NetworkLimits: {
            /** @description Whether a market can be proposed now. */
            canProposeMarket: boolean;
            /** @description Whether an asset can be proposed now. */
            canProposeAsset: boolean;
            /** @description Whether proposing markets is enabled at all. */
            proposeMarketEnabled: boolean;
            /** @description Whether proposing assets is enabled at all. */
            proposeAssetEnabled: boolean;
            /** @description Whether the genesis state is loaded. */
            genesisLoaded: boolean;
            /**
             * Format: int64
             * @description From when markets can be proposed, nanoseconds since the Unix epoch; 0 = not set.
             */
            proposeMarketEnabledFrom: string;
            /**
             * Format: int64
             * @description From when assets can be proposed, nanoseconds since the Unix epoch; 0 = not set.
             */
            proposeAssetEnabledFrom: string;
        };
        /** @description What runs here. */
        InfoReply: {
            /** @description Semantic version with a leading `v`. */
            version: string;
            /** @description Commit that this was built from, or `unknown`. */
            commitHash: string;
        };
        /** @description State of an upgrade. */
        GetProtocolUpgradeStatusReply: {
            /** @description True while the upgrade's block is the newest stored one and the history segment that ends with it is published. */
            ready: boolean;
        };
        /**
         * @description Status of an upgrade proposal.
         *
         *     - `PROTOCOL_UPGRADE_PROPOSAL_STATUS_UNSPECIFIED`: Not a status; as a filter: all.
         *     - `PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING`: At least one validator approves.
         *     - `PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED`: The upgrade block arrived with the required share of voting power.
         *     - `PROTOCOL_UPGRADE_PROPOSAL_STATUS_REJECTED`: The last approver withdrew, or the height passed without the majority.
         * @enum {string}
         */
        ProtocolUpgradeProposalStatus: "PROTOCOL_UPGRADE_PROPOSAL_STATUS_UNSPECIFIED" | "PROTOCOL_UPGRADE_PROPOSAL_STATUS_PENDING" | "PROTOCOL_UPGRADE_PROPOSAL_STATUS_APPROVED" | "PROTOCOL_UPGRADE_PROPOSAL_STATUS_REJECTED";
        /** @description One page of proposals. */
        ListProtocolUpgradeProposalsReply: {
            /** @description The page. */
            protocolUpgradeProposals: components["schemas"]["ProtocolUpgradeProposalPage"];
        };
        /** @description A page of proposals in display order. */
        ProtocolUpgradeProposalPage: {
            /** @description The rows with their cursors. */
            edges: components["schemas"]["ProtocolUpgradeProposalEdge"][];
            /** @description The position of the page in its list. */
            pageInfo: components["schemas"]["PageInfo"];
        };
        /** @description A proposal with its position. */
        ProtocolUpgradeProposalEdge: {
            /** @description The proposal. */
            node: components["schemas"]["ProtocolUpgradeProposal"];
            /** @description Its position in the list. */
            cursor: string;
        };
        /** @description The latest recorded state of a proposal to upgrade the network's software. */
        ProtocolUpgradeProposal: {
            /**
             * Format: uint64
             * @description Height of the block at which the upgrade happens.
             */
            upgradeBlockHeight: string;
            /** @description Release to upgrade to, e.g. `v0.73.0`. */
            networkReleaseTag: string;
            /** @description Keys of the validators that approve, ascending. */
            approvers: string[];
            /** @description Status of the proposal. */
            status: components["schemas"]["ProtocolUpgradeProposalStatus"];
        };
        /** @description The segments held. */
        ListAllNetworkHistorySegmentsReply: {
            /** @description Newest first. */
            segments: components["schemas"]["HistorySegment"][];
        };
        /** @description A sealed span of history. */
        HistorySegment: {
            /**
             * Format: int64
             * @description First height.
             */
            fromHeight: string;
            /**
             * Format: int64
             * @description Last height.
             */
            toHeight: string;
            /** @description SHA-256 of the segment's metadata, lower-case hex. */
            historySegmentId: string;
            /** @description Id of the segment before, or empty for the first. */
            previousHistorySegmentId: string;
            /**
             * Format: int64
             * @description Schema version of its tables.
             */
            databaseVersion: string;
            /** @description Chain it was taken from. */
            chainId: string;
        };
        /**
         * @description The tables of the network's history. Existing clients send these numbers: they never change.
         *
         *     - `TABLE_BALANCES`: Balances of accounts.
         *     - `TABLE_CHECKPOINTS`: Checkpoints.
         *     - `TABLE_DELEGATIONS`: Delegations.
         *     - `TABLE_LEDGER`: Ledger entries.
         *     - `TABLE_ORDERS`: Orders.
         *     - `TABLE_TRADES`: Trades.
         *     - `TABLE_MARKET_DATA`: Market data.
         *     - `TABLE_MARGIN_LEVELS`: Margin levels.
         *     - `TABLE_POSITIONS`: Positions.
         *     - `TABLE_LIQUIDITY_PROVISIONS`: Liquidity provisions.
         *     - `TABLE_MARKETS`: Markets.
         *     - `TABLE_DEPOSITS`: Deposits.
         *     - `TABLE_WITHDRAWALS`: Withdrawals.
         *     - `TABLE_BLOCKS`: Blocks.
         *     - `TABLE_REWARDS`: Rewards.
         * @enum {string}
         */
        Table: "TABLE_BALANCES" | "TABLE_CHECKPOINTS" | "TABLE_DELEGATIONS" | "TABLE_LEDGER" | "TABLE_ORDERS" | "TABLE_TRADES" | "TABLE_MARKET_DATA" | "TABLE_MARGIN_LEVELS" | "TABLE_POSITIONS" | "TABLE_LIQUIDITY_PROVISIONS" | "TABLE_MARKETS" | "TABLE_DEPOSITS" | "TABLE_WITHDRAWALS" | "TABLE_BLOCKS" | "TABLE_REWARDS";
        /** @description The limits of this gateway: sizes, counts and times; 0 = no limit. */
        LimitsReply: {
            /** @description What a request may be at most. */
            request: components["schemas"]["RequestLimits"];
            /** @description How many rows an answer has. */
            rows: components["schemas"]["RowLimits"];
            /** @description Limits of rates and concurrency. */
            rate: components["schemas"]["RateLimits"];
            /** @description How long things may take. */
            time: components["schemas"]["TimeLimits"];
        };
        /** @description What a request may be at most. */
        RequestLimits: {
            /**
             * Format: uint32
             * @description Body, bytes; a longer one gets 413.
             */
            bodyBytes: number;
            /**
             * Format: uint32
             * @description Path and query, bytes; a longer one gets 414.
             */
            urlBytes: number;
            /**
             * Format: uint32
             * @description Header block, bytes; a larger one gets 431.
             */
            headBytes: number;
            /**
             * Format: uint32
             * @description Number of headers; one more gets 431.
             */
            headers: number;
            /**
             * Format: uint32
             * @description Elements of a list parameter; one more gets 400.
             */
            listElements: number;
        };
        /** @description How many rows an answer has. */
        RowLimits: {
            /**
             * Format: uint32
             * @description Default number of rows of a page.
             */
            pageDefault: number;
            /**
             * Format: uint32
             * @description Greatest page; a larger one is cut to it.
             */
            pageGreatest: number;
            /**
             * Format: uint32
             * @description Accounts in one listing; more get 400 and need a filter.
             */
            accountsGreatest: number;
        };
        /** @description Limits of rates and concurrency of one edge. */
        RateLimits: {
            /**
             * Format: uint32
             * @description Requests per second of one client address.
             */
            requestsPerS: number;
            /**
             * Format: uint32
             * @description Downloads at the same time of one client address.
             */
            exportsPerAddress: number;
            /**
             * Format: uint32
             * @description Requests being answered at the same time, of all clients; one more gets 503.
             */
            requestsInFlight: number;
            /**
             * Format: uint32
             * @description Connections at the same time, of all clients; one more gets 503 and is closed.
             */
            connections: number;
            /**
             * Format: uint32
             * @description Requests at the same time on one HTTP/2 connection.
             */
            requestsPerConnection: number;
            /**
             * Format: uint32
             * @description Watches at the same time, of all clients; one more gets 429.
             */
            watches: number;
            /**
             * Format: uint32
             * @description Watches at the same time of one client address; one more gets 429.
             */
            watchesPerAddress: number;
        };
        /** @description How long things may take, milliseconds. */
        TimeLimits: {
            /**
             * Format: uint32
             * @description Until a request's head is complete, from connecting or from its first byte.
             */
            headMs: number;
            /**
             * Format: uint32
             * @description Until a request's body is complete; a later one gets 408.
             */
            bodyMs: number;
            /**
             * Format: uint32
             * @description Between two pieces of a request's body; a later one gets 408.
             */
            bodyIdleMs: number;
            /**
             * Format: uint32
             * @description Until a request on an idle connection; an idle one is then closed.
             */
            idleMs: number;
            /**
             * Format: uint32
             * @description For a query; a longer one gets 504.
             */
            queryMs: number;
            /**
             * Format: uint32
             * @description For the node's answer to a transaction; a longer one gets 504.
             */
            nodeMs: number;
            /**
             * Format: uint32
             * @description Until a transaction is in a block (TYPE_COMMIT); a longer one gets 504.
             */
            commitMs: number;
            /**
             * Format: uint32
             * @description Without progress of a download on the gateway's side; a longer pause breaks it off.
             */
            exportIdleMs: number;
            /**
             * Format: uint32
             * @description Until a client reads the next bytes of its answer; a longer pause closes the connection.
             */
            stalledMs: number;
        };
        /** @description An OpenAPI 3.1 document. */
        OpenApiDocument: {
            [key: string]: unknown;
        };
        /** @description The detail object of every error. */
        ErrorDetail: {
            /**
             * @description Which object this is.
             * @constant
             */
            "@type": "type.googleapis.com/api.v2.ErrorDetail";
            /**
             * Format: int32
             * @description Stable application number, for programs: each operation lists its own.
             */
            code: number;
            /** @description The reason, for people. */
            message: string;
            /** @description The offending value or the neighbouring valid values. */
            inner: string;
        };
        /** @description A file that is streamed in chunks, described in its first chunk. */
        ExportInfo: {
            /**
             * @description Which object this is.
             * @constant
             */
            "@type": "type.googleapis.com/api.v2.ExportInfo";
            /** @description Name under which to save the file. */
            fileName: string;
            /** @description Chain the rows come from. */
            chainId: string;
            /** @description Table of a network history export, e.g. `TABLE_TRADES`. */
            table?: string;
            /**
             * Format: uint64
             * @description Length of the whole file in bytes, when known in advance.
             */
            totalBytes?: string;
            /**
             * Format: uint64
             * @description Number of rows, when known in advance.
             */
            totalRows?: string;
        };
        /** @description What is wrong. Every refusal has this shape. */
        Problem: {
            /**
             * Format: int32
             * @description Canonical RPC status code: 3 invalid argument, 4 deadline exceeded, 5 not found, 6 already exists, 8 resource exhausted, 9 failed precondition, 12 unimplemented, 13 internal, 14 unavailable.
             */
            code: number;
            /** @description The name of the code and the word `error`; `details` has the reason. */
            message: string;
            /** @description The reasons. Several when several fields of one transaction are wrong. */
            details: components["schemas"]["ErrorDetail"][];
        };
        /** @description Some bytes of a file. */
        ChunkResult: {
            /** @description Media type of the file. */
            contentType: string;
            /** @description Bytes of the file. */
            data: string;
            /** @description What the file is, in the first chunk; empty in every later one. */
            extensions: components["schemas"]["ExportInfo"][];
        };
        /**
         * @description One line of a download as JSON lines (`Accept: application/x-ndjson`).
         * @example {
         *       "result": {
         *         "contentType": "application/zip",
         *         "data": "UEsDBA==",
         *         "extensions": [
         *           {
         *             "@type": "type.googleapis.com/api.v2.ExportInfo",
         *             "fileName": "testnet-0001-orders-1-3000.zip",
         *             "chainId": "testnet-0001",
         *             "table": "TABLE_ORDERS",
         *             "totalBytes": "1593201",
         *             "totalRows": "9594"
         *           }
         *         ]
         *       }
         *     }
         * @example {
         *       "error": {
         *         "code": 13,
         *         "message": "Internal error",
         *         "details": [
         *           {
         *             "@type": "type.googleapis.com/api.v2.ErrorDetail",
         *             "code": 240014,
         *             "message": "a segment of the range cannot be read",
         *             "inner": ""
         *           }
         *         ]
         *       }
         *     }
         */
        Chunk: {
            /** @description The next bytes of the file. */
            result?: components["schemas"]["ChunkResult"];
            /** @description Why the download broke off, in its last line. */
            error?: components["schemas"]["Problem"];
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
